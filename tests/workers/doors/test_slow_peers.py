"""Peers that do not read: senders to them hear the truth in time, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK, eventually, time_factor
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import (
    TIMED_OUT,
    Clients,
    ConnectionEnded,
    WireClient,
    call,
    clients_of,
    refusal,
)

MIB = 1024 * 1024
VALUE = b"v" * 60_000
SMALL_BUFFER = 4096


@pytest.fixture
def node() -> Iterator[Node]:
    """A node whose own limit of time for a slow peer plays no part."""
    with simulated(3) as node:
        yield node


@pytest.fixture
def impatient() -> Iterator[tuple[Node, Clients]]:
    """A node with little patience, and connections to it."""
    with simulated(2, unread_output_s=0.6) as node, clients_of(node.address) as connect:
        yield node, connect


def numbered(number: int) -> bytes:
    """Return a value of 60 KB that tells which one it is."""
    return number.to_bytes(4, "big") + VALUE


def places(node: Node) -> Iterator[tuple[int, int, int]]:
    """Yield telling combinations of the workers of the senders, of the slow peer and of the topic's owner."""
    last = node.workers - 1
    yield from dict.fromkeys([(0, 0, 0), (0, last, 0), (0, 0, last), (0, last, last), (0, min(1, last), last)])


def sends(topic: str, timeout: float, numbers: range) -> bytes:
    return b"".join(call(":send!", n, timeout, topic, numbered(n)) for n in numbers)


@pytest.mark.parametrize("method", [":recv!", ":take!"])
def test_what_a_slow_peer_gets_in_the_end_is_what_its_senders_were_told(
    node: Node, connect: Clients, topic: str, method: str
) -> None:
    group = ["pool"] if method == ":take!" else []
    for place, (here, there, owner) in enumerate(places(node)):
        name = node.topic_of(owner, f"{topic}{place}")
        sender, slow = connect(worker=here), connect(worker=there, receive_buffer=SMALL_BUFFER)
        calls = 150
        slow.write(b"".join(call(method, n, 60_000, name, *group) for n in range(calls)))
        waiting = {"takers": {"pool": calls}} if group else {"receivers": calls}
        sender.wait_until(name, **waiting)
        told = {}
        for numbers in (range(60), range(60, 63), range(63, 66)):
            sender.write(sends(name, 40, numbers))
            written_at = CLOCK.monotonic()
            answers = sender.replies(len(numbers))
            assert CLOCK.monotonic() - written_at < 0.040 + 0.050 + 0.3 * time_factor()
            told |= {id: result for _, id, result in answers}
        met = [n for n, result in told.items() if result is True]
        unknown = [n for n, result in told.items() if result not in (True, TIMED_OUT)]
        assert met, "the slow peer got nothing at all"
        assert len(met) < 66, "the slow peer was not slow"
        assert TIMED_OUT in told.values()
        assert all(refusal([":send!", n, told[n]]).code == "unknown-outcome" for n in unknown)
        assert len(unknown) <= 1, "one at most is half written"
        slow.call(":ping", "all")
        got: dict[int, int] = {}
        while (answer := slow.reply())[0] != ":ping":
            number = int.from_bytes(answer[2][:4], "big")
            got[number] = got.get(number, 0) + 1
        assert set(met) <= got.keys(), "a sender was told true for a value that did not arrive"
        assert got.keys() <= {*met, *unknown}, "a sender was told that nobody came for a value that did arrive"
        if group:
            assert set(got.values()) == {1}
        # What it asked for and did not get, it still waits for.
        left = calls - sum(got.values())
        waiting = {"takers": {"pool": left}} if group else {"receivers": left}
        sender.wait_until(name, **waiting)
        assert sender.ask(":send!", 1, 5000, name, "at last") is True
        assert slow.reply()[2] == "at last"
        slow.close()


def test_others_do_not_notice_a_peer_that_does_not_read(node: Node, connect: Clients, topic: str) -> None:
    slow, flooder = connect(worker=0, receive_buffer=SMALL_BUFFER), connect()
    one, other = connect(worker=0), connect(worker=0)
    slow.write(b"".join(call(":recv!", n, 60_000, [topic, "slow"]) for n in range(1000)))
    before = node.resident()
    worst = 0.0
    for round in range(150):
        flooder.call(":send!", round, 100, [topic, "slow"], VALUE)
        began = CLOCK.monotonic()
        one.call(":recv!", round, 5000, [topic, "quick"])
        assert other.ask(":send!", round, 5000, [topic, "quick"], round) is True
        assert one.reply() == [":recv!", round, round]
        worst = max(worst, CLOCK.monotonic() - began)
    assert worst < 0.1 * time_factor()
    assert node.resident() - before < 30 * MIB
    assert len(flooder.replies(150)) == 150


def test_a_client_that_never_reads_its_replies_is_not_read_from(node: Node, connect: Clients) -> None:
    client = connect(receive_buffer=SMALL_BUFFER)
    other = connect()
    before = node.resident()
    client.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        write_all(client, call(":hello", 1, {}) * 500, 64 * MIB)  # of all calls the one with the longest answer
    assert node.resident() - before < 40 * MIB
    assert other.ask(":ping", 1) is True


def test_a_peer_that_reads_nothing_is_closed_and_the_log_says_why(impatient: tuple[Node, Clients], topic: str) -> None:
    node, connect = impatient
    slow, sender, heir = connect(receive_buffer=SMALL_BUFFER), connect(), connect()
    slow.write(b"".join(call(":take!", n, 60_000, topic, "pool") for n in range(200)))
    sender.wait_until(topic, takers={"pool": 200})
    sender.write(sends(topic, 60_000, range(100)))
    eventually(lambda: "does not read its replies" in node.log)
    # Nothing is lost by it: what the kernel took before is true, and the rest waits.
    left = heir.info(topic)["senders"]
    assert left > 0
    got = [int.from_bytes(heir.ask(":recv!", n, 5000, topic)[:4], "big") for n in range(left)]
    assert len(set(got)) == left
    assert {result for _, _, result in sender.replies(100)} == {True}
    with pytest.raises(ConnectionEnded):
        slow.replies(200)


def test_a_peer_that_reads_steadily_is_kept_however_slow_it_is(impatient: tuple[Node, Clients], topic: str) -> None:
    _, connect = impatient
    slow, sender = connect(receive_buffer=SMALL_BUFFER), connect()
    count = 60
    slow.write(b"".join(call(":take!", n, 60_000, topic, "pool") for n in range(count)))
    sender.wait_until(topic, takers={"pool": count})
    sender.write(sends(topic, 60_000, range(count)))
    eventually(sender.has_input)
    # Far too slow for the kernel to call the node's end writable within 0.6 s.
    for _ in range(18):
        slow.reply()
        CLOCK.sleep(0.1)
    assert len(slow.replies(count - 18)) == len(sender.replies(count)) - 18 == count - 18


def test_a_client_that_only_calls_is_closed_too(impatient: tuple[Node, Clients]) -> None:
    client = impatient[1](receive_buffer=SMALL_BUFFER)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        write_all(client, call(":hello", 1, {}) * 500, 64 * MIB)


def write_all(client: WireClient, data: bytes, total: int) -> None:
    """Write `data` again and again."""
    for _ in range(total // len(data)):
        client.write(data)
