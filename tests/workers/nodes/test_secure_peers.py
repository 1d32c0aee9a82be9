"""Links between nodes by TLS: what is said of one that cannot be made, and what a bad one costs anybody else."""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from skywalker import errors
from skywalker.access.proof import Response, Secrets
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.tls.contexts import server_context
from skywalker.tls.words import CLOSED, NO_TLS, SILENT
from skywalker.wire import junction as wire
from tests.authority import Authority
from tests.workers.far_end import FarEnd
from tests.workers.outside import HOST, Outside, outside
from tests.workers.wire_client import call
from workers.doors.junction.session import Session
from workers.mesh.messages import CENSUS, COUNTED, GIVE, LISTEN, MET, SEND, SETTLED, TOOK
from workers.nodes.outbound_peer import ATTEMPT_S

SECRET: Final = "skw_a-secret-of-this-test"
WHO: Final = errors.Unauthorized("this node wants to know who is calling")


@pytest.fixture
def log(capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Returns what the worker has logged so far."""
    said: list[str] = []

    def so_far() -> str:
        said.append(capfd.readouterr().err)
        return "".join(said)

    return so_far


@pytest.fixture(params=["tls", "nothing but TCP"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where certificates can be, if it speaks TLS."""
    return tmp_path if request.param == "tls" else None


# A node that we dial.


@contextlib.contextmanager
def dialling(
    directory: Path | None, trust: Trust | None = None
) -> Iterator[tuple[Outside, Callable[[ssl.SSLContext | None], FarEnd]]]:
    """Yield what is outside of a worker that dials another node, and how to be that, by a context of TLS if need be."""
    with outside(directory, trust=trust) as world, world.inside() as client, contextlib.ExitStack() as stack:

        def dialled(context: ssl.SSLContext | None) -> FarEnd:
            return stack.enter_context(contextlib.closing(world.dialled(context=context)))

        world.dial()
        client.call(":send!", 1, 60_000, "topic", "value")
        yield world, dialled


def reason(world: Outside, log: Callable[[], str], later: float = 0.0) -> str:
    """Return why it is said that dialling comes to nothing."""
    found: list[re.Match[str]] = []

    def is_said() -> bool:
        found.extend(re.finditer(r'event=peer-unreachable .*reason=("[^"\\]*(?:\\.[^"\\]*)*"|\S+)', log()))
        return bool(found)

    world.until(is_said, later)
    return found[0][1].strip('"')


@pytest.mark.parametrize("words", [SILENT, CLOSED, NO_TLS])
def test_it_is_said_why_there_is_no_tls(tmp_path: Path, log: Callable[[], str], words: str) -> None:
    with dialling(tmp_path) as (world, _), world.accepted() as sock:
        world.turn()
        assert sock.recv(4096)
        if words == NO_TLS:
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        elif words == CLOSED:
            sock.close()
        assert reason(world, log, 2 * ATTEMPT_S if words == SILENT else 0.0) == words


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("name", "its certificate is for other names"),
        ("authority", "its certificate is of no authority that is trusted here"),
        ("trust", "our certificate is of an authority that it does not trust"),
        ("refuses", f"what is there does not let this node in: it said: {WHO}"),
        ("another", "node another answers there"),
    ],
)
def test_it_is_said_what_is_wrong_between_two_that_speak_it(
    tmp_path: Path, stranger: Authority, log: Callable[[], str], flaw: str, words: str
) -> None:
    with dialling(tmp_path) as (world, dialled):
        ours = world.authority
        cert, key = (stranger if flaw == "authority" else ours).sign("another.example" if flaw == "name" else HOST)
        context = server_context(cert, key, (stranger if flaw == "trust" else ours).ca, required=True)
        with contextlib.suppress(ssl.SSLError, EOFError):
            far = dialled(context)
            far.reply()
            far.say(
                wire.error_frame(wire.PEER, b"\0", WHO)
                if flaw == "refuses"
                else call(":peer", 0, {"node": "another", "worker": 0})
            )
        assert reason(world, log).startswith(words)


def test_one_without_tls_is_told_so_by_one_that_speaks_nothing_else(log: Callable[[], str]) -> None:
    with dialling(None) as (world, dialled):
        dialled(None).say(Session.tls_wanted)
        assert reason(world, log).startswith("what is there does not let this node in: it said: this node speaks TLS")


def test_it_is_said_once_and_tried_again_but_not_without_a_pause(tmp_path: Path, log: Callable[[], str]) -> None:
    with dialling(tmp_path) as (world, _):
        for later in (0.0, 100.0):
            with world.accepted(later) as sock:
                world.turn(later)
                assert sock.recv(4096)
            world.turn()
            assert not world.is_dialled()
        assert log().count("event=peer-unreachable") == 1


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_what_comes_with_the_answer_is_heard(directory: Path | None, cut: int) -> None:
    with dialling(directory) as (_, dialled):
        far = dialled(None)
        assert "token" not in far.reply()[2]
        census = b"\x93" + bytes((CENSUS, 7)) + b"\xa5topic"
        said = call(":peer", 0, {"node": "dialled", "worker": 0}) + len(census).to_bytes(4, "big") + census
        far.say(said[:cut])
        far.say(said[cut:])
        assert {far.told()[0] for _ in range(3)} == {SETTLED, SEND, COUNTED}


# A node that is dialled, and does not prove that it is one.


def is_open(question: list[Any]) -> bytes:
    """Be a node that lets everybody do everything."""
    return wire.error_frame(wire.CHALLENGE, b"\0", errors.Forbidden("this node has no cluster.secret"))


def is_original(question: list[Any]) -> bytes:
    """Be one that knows no challenge."""
    return wire.error_frame(wire.CHALLENGE, b"\0", errors.UnknownMethod("there is no such method"))


def makes_it_up(question: list[Any]) -> bytes:
    answer = {"node": "dialled", "address": question[2]["at"], "nonce": b"n" * 32, "proof": b"p" * 32}
    return call(":challenge", 0, answer | {"key": question[2]["keys"][0]})


def is_of_another_cluster(question: list[Any]) -> bytes:
    at = Address.parse(question[2]["at"])
    lied = {**question[2], "keys": [*Secrets("another").ids]}
    answer = {**Response(Secrets("another"), "dialled", at, at, lied, b"n" * 32).answer}
    return call(":challenge", 0, answer | {"key": question[2]["keys"][0]})


def is_another_node(question: list[Any]) -> bytes:
    at = Address.parse(question[2]["at"])
    return call(":challenge", 0, Response(Secrets(SECRET), "other", at, at, question[2], b"n" * 32).answer)


def is_reached_elsewhere(question: list[Any]) -> bytes:
    at = Address("10.0.0.9", 3443)
    return call(":challenge", 0, Response(Secrets(SECRET), "dialled", at, at, question[2], b"n" * 32).answer)


def answers_peer(method: str) -> Callable[[list[Any]], bytes]:
    """Answer as if it had been asked by :peer, under the name of any method."""
    return lambda question: call(method, 0, {"node": "dialled", "worker": 0, "life": "x"})


SAID: Final = (":challenge", ":peer", ":error", ":proof", ":hello", "")


@pytest.mark.parametrize(
    ("pretends", "words"),
    [
        (is_open, "it proves nothing, and says: this node has no cluster.secret"),
        (is_original, "it proves nothing, and says: there is no such method: if it is of the version before, upgrade"),
        (makes_it_up, "its proof is wrong"),
        (is_of_another_cluster, "its proof is wrong"),
        (is_another_node, "node other answers there"),
        (is_reached_elsewhere, "the node that answers there says that it is reached at 10.0.0.9:3443"),
        *((answers_peer(method), "its answer to a challenge ") for method in SAID),
    ],
)
def test_whoever_proves_nothing_gets_no_call_no_value_and_no_secret(
    log: Callable[[], str], pretends: Callable[[list[Any]], bytes], words: str
) -> None:
    with dialling(None, Trust(secret=SECRET)) as (world, dialled):
        far = dialled(None)
        heard = [far.reply()]
        far.say(pretends(heard[0]))
        with contextlib.suppress(EOFError):
            while True:
                heard.append(far.reply())
        told = reason(world, log)
        assert told.startswith(f"what is there does not prove to be a node of this cluster: {words}")
        assert [each[0] for each in heard] == [":challenge", ":proof"]
        assert SECRET not in str(heard)
        assert isinstance(heard[1][2], str), "it hears why it is taken for no node"


def test_one_of_the_version_before_gets_the_secret_only_while_that_is_allowed(log: Callable[[], str]) -> None:
    with dialling(None, Trust(secret=SECRET, in_clear=True)) as (_, dialled):
        far = dialled(None)
        far.say(is_original(far.reply()))
        assert far.reply()[2]["token"] == SECRET
        assert SECRET not in log()


# A node that is dialled by one without manners.


def cut_short(far: FarEnd) -> None:
    assert far.records is not None
    far.records.write(b"x" * 1000)
    far.write(far.records.output()[:500])
    far.close()


def rubbish(far: FarEnd) -> None:
    far.write(b"\x17\x03\x03\x00\x20" + bytes(32))


def no_records(far: FarEnd) -> None:
    far.write(b"GET / HTTP/1.1\r\n\r\n")


def says_goodbye_and_stays(far: FarEnd) -> None:
    assert far.records is not None
    far.records.close()
    far.write(far.records.output())


def an_endless_message(far: FarEnd) -> None:
    far.say((1 << 24).to_bytes(4, "big"))
    for _ in range(20):
        far.say(bytes(16_384))


@pytest.mark.parametrize("wrong", [cut_short, rubbish, no_records, says_goodbye_and_stays, an_endless_message])
def test_what_is_no_tls_ends_the_link_and_costs_nobody_else_anything(
    tmp_path: Path, log: Callable[[], str], wrong: Callable[[FarEnd], None]
) -> None:
    with outside(tmp_path) as world, world.inside() as client, contextlib.closing(world.guest()) as far:
        far.tell(SEND, 1, 0.0, "topic", "hi")
        world.until(lambda: world.worker.holds()["topics"])
        wrong(far)
        world.until(lambda: not world.core.peers.inbound)
        assert world.worker.holds()["topics"] == 0
        said = log()
        assert "event=guest-left" in said
        assert "ssl.c" not in said, "it is said in words"
        client.call(":ping", 1)
        world.turn()
        assert client.reply() == [":ping", 1, True]


def test_a_message_may_come_in_records_of_a_byte_each_and_a_large_value_goes_whole(tmp_path: Path) -> None:
    value = "".join(map(str, range(12_000)))[:60_000]
    with outside(tmp_path) as world, world.inside() as client, contextlib.closing(world.guest()) as far:
        client.call(":recv!", 7, 5000, "bytes")
        body = b"\x95" + bytes((SEND, 1, 0)) + b"\xa5bytes\xa2hi"
        for byte in len(body).to_bytes(4, "big") + body:
            far.say(bytes((byte,)))
        assert far.told() == [MET, 1]
        assert client.reply() == [":recv!", 7, "hi"]
        far.tell(LISTEN, 1, 0.0, "large", None)
        world.turn()
        client.call(":send!", 1, 5000, "large", value)
        assert far.told() == [GIVE, 1, value]
        assert not client.has_input(), "nobody has said yet that it was taken"
        far.tell(TOOK, 1)
        world.turn()
        assert client.reply() == [":send!", 1, True]
