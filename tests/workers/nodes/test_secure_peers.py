"""Links between nodes by TLS: what is said of one that cannot be made, and what a bad one costs anybody else."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgpack
import pytest

from skywalker import errors
from skywalker.access.proof import Response, Secrets
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.config import Config
from skywalker.limits import Limits
from skywalker.members import Member, Snapshot
from skywalker.tls.contexts import server_context
from skywalker.tls.records import Records
from skywalker.tls.words import CLOSED, NO_TLS, SILENT
from skywalker.wire import junction as wire
from tests.authority import Authority
from tests.helpers import eventually, time_factor, written_to
from tests.workers.dialled import HOST, Behave, Dialled, closes, says_nothing, speaks_plainly
from tests.workers.running_nodes import Node as RunningNode
from tests.workers.running_nodes import running_in_tls
from tests.workers.turns import turn_at
from tests.workers.wire_client import SECURE, WireClient, decoded, framed, packed
from workers.access.admission import Admission
from workers.calls.own_node import VERSION, OwnNode
from workers.calls.worker_states import Event
from workers.doors.junction.dialogue import Dialogue
from workers.doors.junction.session import Session
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop
from workers.engine.machine import MACHINE
from workers.engine.transport import PlainSocket
from workers.mesh.messages import CENSUS, COUNTED, GIVE, LISTEN, MET, SEND, SETTLED, TOOK
from workers.stats.log import Log
from workers.worker.core import Core

SECRET: Final = "skw_a-secret-of-this-test"
WHO: Final = errors.Unauthorized("this node wants to know who is calling")


# A node that we dial.


class Dialler:
    """The parts of a worker, whose calls all belong to the one that it dials; with an authority, it speaks TLS."""

    def __init__(self, dialled: Member, authority: Authority | None, trust: Trust | None = None) -> None:
        self.loop = Loop(MACHINE)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        log = Log(MACHINE.monotonic, self._log.fileno())
        turn = turn_at(time.monotonic())
        credentials = None
        if authority is not None:
            cert, key = authority.sign(HOST)
            credentials = Credentials(Config(tls_cert=cert, tls_key=key, tls_ca=authority.ca), log, MACHINE.monotonic)
        member = Member("us", "us", Address(HOST, 1), 1, False, (1,))
        admission = Admission(None, Limits(), turn, log, trust)
        self.core = Core(
            OwnNode(member, "0", 0, None, MACHINE),
            Limits(),
            self.loop,
            turn,
            log,
            MACHINE,
            admission=admission,
            credentials=credentials,
        )
        self.core.standing.happened(Event.OPENED)
        self.core.follow(Snapshot([dialled]))
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.core.connections.opened(Dialogue(PlainSocket(theirs), "test", self.core.commons))
        self.client = WireClient(ours)

    def turn(self) -> None:
        turn = self.core.turn
        turn.begin(time.monotonic())
        turn.end()
        while self.loop.turn(turn, patient=False):
            pass

    @property
    def log(self) -> str:
        return written_to(self._log)

    def until(self, check: Callable[[], object], within: float = 5.0) -> None:
        deadline = time.monotonic() + within * time_factor()
        while not check():
            assert time.monotonic() < deadline, self.log
            self.turn()
            time.sleep(0.001)

    def close(self) -> None:
        self.client.close()
        self.turn()
        self.core.peers.stop()
        self._log.close()


@contextlib.contextmanager
def dialling(
    behave: Behave,
    authority: Authority | None,
    context: ssl.SSLContext | None = None,
    trust: Trust | None = None,
) -> Iterator[tuple[Dialler, Dialled]]:
    with Dialled(behave, context) as dialled:
        dialler = Dialler(dialled.member, authority, trust)
        try:
            yield dialler, dialled
        finally:
            dialler.close()


def reason(dialler: Dialler) -> str:
    """Have it dial, and return why it is said that this comes to nothing."""
    dialler.client.call(":send!", 1, 60_000, "topic", "value")
    dialler.until(lambda: "event=peer-unreachable" in dialler.log)
    found = re.search(r'event=peer-unreachable .*reason=("[^"\\]*(?:\\.[^"\\]*)*"|\S+)', dialler.log)
    assert found is not None
    return found[1].strip('"')


def refuses(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(wire.error_frame(wire.PEER, b"\0", WHO))
    says_nothing(sock)


def is_another(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(framed(packed([":peer", 0, {"node": "another", "worker": 0}])))
    says_nothing(sock)


@pytest.mark.parametrize(
    ("behave", "words"),
    [(says_nothing, SILENT), (closes, CLOSED), (speaks_plainly, NO_TLS)],
)
def test_it_is_said_why_there_is_no_tls(
    authority: Authority, behave: Behave, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.nodes.outbound_peer.ATTEMPT_S", 0.3 * time_factor())
    with dialling(behave, authority) as (dialler, _):
        assert reason(dialler) == words


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
    authority: Authority, stranger: Authority, flaw: str, words: str
) -> None:
    cert, key = (stranger if flaw == "authority" else authority).sign("another.example" if flaw == "name" else HOST)
    ca = (stranger if flaw == "trust" else authority).ca
    context = server_context(cert, key, ca, required=True)
    with dialling(is_another if flaw == "another" else refuses, authority, context) as (dialler, _):
        assert reason(dialler).startswith(words)


def test_one_without_tls_is_told_so_by_one_that_speaks_nothing_else(authority: Authority) -> None:
    def tells(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(Session.tls_wanted)

    with dialling(tells, None) as (dialler, _):
        assert reason(dialler).startswith("what is there does not let this node in: it said: this node speaks TLS here")


def test_it_is_said_once_and_tried_again_and_again_but_not_without_a_pause(authority: Authority) -> None:
    with dialling(closes, authority) as (dialler, dialled):
        assert reason(dialler) == CLOSED
        dialler.until(lambda: dialled.accepted > 2)
        until = time.monotonic() + 0.5
        dialler.until(lambda: time.monotonic() > until)
        assert dialled.accepted < 20
        assert dialler.log.count("event=peer-unreachable") == 1


@pytest.mark.parametrize("speaks", ["tls", "nothing but TCP"])
@pytest.mark.parametrize("cut", [0, 1, 30])
def test_what_comes_with_the_answer_is_heard(authority: Authority, speaks: str, cut: int) -> None:
    heard: list[Any] = []
    asked: list[Any] = []

    def answers(sock: socket.socket) -> None:
        asked.append(decoded(sock.recv(4096)))
        census = packed([CENSUS, 7, "topic"])
        said = framed(packed([":peer", 0, {"node": "dialled", "worker": 0}])) + len(census).to_bytes(4, "big") + census
        sock.sendall(said[:cut])
        sock.sendall(said[cut:])
        unpacker = msgpack.Unpacker(strict_map_key=False)
        data = sock.recv(4)
        while data:
            unpacker.feed(sock.recv(int.from_bytes(data, "big")))
            heard.extend(unpacker)
            data = sock.recv(4)

    context = server_context(*authority.sign(HOST)) if speaks == "tls" else None
    with dialling(answers, authority if context else None, context) as (dialler, _):
        dialler.client.call(":send!", 1, 60_000, "topic", "value")
        dialler.until(lambda: len(heard) == 3)
        assert {message[0] for message in heard} == {SETTLED, SEND, COUNTED}
        assert "token" not in asked[0][2]


# A node that is dialled, and does not prove that it is one.


def is_open(question: list[Any]) -> list[bytes]:
    """Be a node that lets everybody do everything."""
    return [wire.error_frame(wire.CHALLENGE, b"\0", errors.Forbidden("this node has no cluster.secret"))]


def is_original(question: list[Any]) -> list[bytes]:
    """Be one that knows no challenge."""
    return [wire.error_frame(wire.CHALLENGE, b"\0", errors.UnknownMethod("there is no such method"))]


def makes_it_up(question: list[Any]) -> list[bytes]:
    answer = {"node": "dialled", "address": question[2]["at"], "nonce": b"n" * 32, "proof": b"p" * 32}
    return [framed(packed([":challenge", 0, answer | {"key": question[2]["keys"][0]}]))]


def is_of_another_cluster(question: list[Any]) -> list[bytes]:
    at = Address.parse(question[2]["at"])
    lied = {**question[2], "keys": [*Secrets("another").ids]}
    answer = {**Response(Secrets("another"), "dialled", at, at, lied, b"n" * 32).answer}
    return [framed(packed([":challenge", 0, answer | {"key": question[2]["keys"][0]}]))]


def is_another_node(question: list[Any]) -> list[bytes]:
    at = Address.parse(question[2]["at"])
    return [
        framed(packed([":challenge", 0, Response(Secrets(SECRET), "other", at, at, question[2], b"n" * 32).answer]))
    ]


def is_reached_elsewhere(question: list[Any]) -> list[bytes]:
    at = Address("10.0.0.9", 3443)
    return [
        framed(packed([":challenge", 0, Response(Secrets(SECRET), "dialled", at, at, question[2], b"n" * 32).answer]))
    ]


def answers_peer(method: str) -> Callable[[list[Any]], list[bytes]]:
    """Answer as if it had been asked by :peer, under the name of any method."""
    return lambda question: [framed(packed([method, 0, {"node": "dialled", "worker": 0, "life": "x"}]))]


PRETENDERS: Final = (
    is_open, is_original, makes_it_up, is_of_another_cluster, is_another_node, is_reached_elsewhere,
)  # fmt: skip
SAID: Final = (":challenge", ":peer", ":error", ":proof", ":ping", ":hello", ":nothing", "")


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
    ids=[*(each.__name__ for each in PRETENDERS), *SAID],
)
@pytest.mark.parametrize("speaks", ["tls", "nothing but TCP"])
def test_whoever_proves_nothing_gets_no_call_no_value_and_no_secret(
    authority: Authority, pretends: Callable[[list[Any]], list[bytes]], words: str, speaks: str
) -> None:
    heard: list[bytes] = []

    def answers(sock: socket.socket) -> None:
        heard.append(sock.recv(4096))
        for frame in pretends(decoded(heard[-1])):
            sock.sendall(frame)
        while data := sock.recv(4096):
            heard.append(data)

    context = server_context(*authority.sign(HOST)) if speaks == "tls" else None
    with dialling(answers, authority if context else None, context, Trust(secret=SECRET)) as (dialler, _):
        told = reason(dialler)
        assert told.startswith(f"what is there does not prove to be a node of this cluster: {words}")
        eventually(lambda: len(heard) >= 2)
        for data in heard:
            assert decoded(data)[0] in (":challenge", ":proof")
            assert SECRET.encode() not in data
        assert isinstance(decoded(heard[1])[2], str), "it hears why it is taken for no node"


def test_one_of_the_version_before_gets_the_secret_only_while_that_is_allowed(authority: Authority) -> None:
    heard: list[Any] = []

    def answers(sock: socket.socket) -> None:
        heard.append(decoded(sock.recv(4096)))
        sock.sendall(is_original(heard[-1])[0])
        heard.append(decoded(sock.recv(4096)))
        sock.sendall(framed(packed([":peer", 0, {"node": "dialled", "worker": 0, "life": "x"}])))
        says_nothing(sock)

    with dialling(answers, None, None, Trust(secret=SECRET, in_clear=True)) as (dialler, _):
        dialler.client.call(":send!", 1, 60_000, "topic", "value")
        dialler.until(lambda: len(heard) == 2)
        assert heard[1][2]["token"] == SECRET
        assert SECRET not in dialler.log


# A node that is dialled by one without manners.


class Rough:
    """A worker of another node, as far as a node can tell, whose TLS is made here, record by record."""

    def __init__(self, node: RunningNode) -> None:
        self._socket = socket.create_connection(node.address, 5 * time_factor())
        self.records = Records(SECURE[node.address], server_hostname=node.address[0])
        while not self.records.shake_hands():
            self.flush()
            self.records.feed(self._socket.recv(65536))
        self.flush()
        with WireClient.open(node.address) as client:
            greeting = client.ask(":hello", 0, {})
        options = {"from": "rough", "by": 0, "node": greeting["node"], "worker": 0, "version": VERSION}
        self._input = bytearray()
        self.write(framed(packed([":peer", 0, options])))
        assert decoded(self._cut(2))[2]["worker"] == 0

    def write(self, data: bytes) -> None:
        self.records.write(data)
        self.flush()

    def flush(self) -> None:
        self._socket.sendall(self.records.output())

    def hear(self) -> list[Any]:
        """Return the next message, but for those that ask whether it lives, which are answered."""
        message: list[Any] = msgpack.unpackb(self._cut(4)[4:], strict_map_key=False)
        if message[0] == CENSUS:
            self.say(COUNTED, message[1], b"")
            return self.hear()
        return message

    def _cut(self, head: int) -> bytes:
        while len(self._input) < head + int.from_bytes(self._input[:head], "big"):
            self.records.feed(self._socket.recv(65536))
            self._input += self.records.read()
            assert not self.records.ended
        end = head + int.from_bytes(self._input[:head], "big")
        cut = bytes(self._input[:end])
        del self._input[:end]
        return cut

    def say(self, *elements: Any) -> None:
        body = packed(elements)
        self.write(len(body).to_bytes(4, "big") + body)

    def raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_in_tls(tmp_path_factory.mktemp("node"), mesh_bytes="1MiB") as node:
        yield node


@pytest.fixture
def rough(node: RunningNode) -> Iterator[Rough]:
    with contextlib.closing(Rough(node)) as rough:
        yield rough


@pytest.fixture
def client(node: RunningNode) -> Iterator[WireClient]:
    with WireClient.open(node.address) as client:
        yield client


def cut_short(rough: Rough) -> None:
    rough.records.write(b"x" * 1000)
    rough.raw(rough.records.output()[:500])
    rough.close()


def rubbish(rough: Rough) -> None:
    rough.raw(b"\x17\x03\x03\x00\x20" + bytes(32))


def no_records(rough: Rough) -> None:
    rough.raw(b"GET / HTTP/1.1\r\n\r\n")


def says_goodbye_and_stays(rough: Rough) -> None:
    rough.records.close()
    rough.flush()


def an_endless_message(rough: Rough) -> None:
    with contextlib.suppress(OSError):
        rough.write((1 << 24).to_bytes(4, "big"))
        for _ in range(20):
            rough.write(bytes(16_384))


@pytest.mark.parametrize("wrong", [cut_short, rubbish, no_records, says_goodbye_and_stays, an_endless_message])
def test_what_is_no_tls_ends_the_link_and_costs_nobody_else_anything(
    node: RunningNode, rough: Rough, client: WireClient, wrong: Callable[[Rough], None]
) -> None:
    topic = wrong.__name__
    rough.say(SEND, 1, 0.0, topic, "hi")
    client.wait_until(topic, senders=1)
    gone = node.log.count("event=guest-left")
    wrong(rough)
    client.wait_until(topic, senders=0)
    eventually(lambda: node.log.count("event=guest-left") > gone)
    assert "ssl.c" not in node.log, "it is said in words"
    assert client.ask(":ping", 1) is True


def test_a_message_may_come_in_records_of_a_byte_each(rough: Rough, client: WireClient) -> None:
    body = packed([SEND, 1, 0.0, "bytes", "hi"])
    for byte in len(body).to_bytes(4, "big") + body:
        rough.write(bytes((byte,)))
    assert client.ask(":recv!", 7, 5000, "bytes") == "hi"
    assert rough.hear() == [MET, 1]


def test_values_for_one_that_does_not_read_go_to_others(node: RunningNode, rough: Rough) -> None:
    value, count = "v" * 60_000, 400  # more than the kernel takes, and what may wait
    with contextlib.ExitStack() as stack:
        sender, receiver = (stack.enter_context(WireClient.open(node.address)) for _ in range(2))
        for number in range(count):
            rough.say(LISTEN, number, 0.0, "unread", None)
        sender.wait_until("unread", receivers=count)
        gone = node.log.count("event=guest-left")
        for number in range(count):
            sender.call(":send!", number, 60_000, "unread", f"{number}{value}"[: len(value)])
        got = 0
        with contextlib.suppress(TimeoutError):
            for number in range(count):
                receiver.call(":recv!", number, 60_000, "unread")
                assert len(receiver.reply(10.0)[2]) == len(value)
                got += 1
        assert got == count
        told = sender.replies(count, 10.0)
        assert sorted(number for _, number, _ in told) == [*range(count)]
        assert all(result is True for _, _, result in told)
        eventually(lambda: node.log.count("event=guest-left") > gone)


def test_a_large_value_goes_over_a_link_whole(rough: Rough, client: WireClient) -> None:
    value = "".join(map(str, range(12_000)))[:60_000]
    rough.say(LISTEN, 1, 0.0, "large", None)
    client.wait_until("large", receivers=1)
    client.call(":send!", 1, 5000, "large", value)
    assert rough.hear() == [GIVE, 1, value]
    assert not client.has_input(0.05), "nobody has said yet that it was taken"
    rough.say(TOOK, 1)
    assert client.reply() == [":send!", 1, True]
