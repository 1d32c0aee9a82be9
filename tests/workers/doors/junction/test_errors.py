"""Bad input gets an error with a stable code, naming the call where it can be read, and costs nobody anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.staged import Node, simulated
from tests.workers.wire_client import Clients, framed, packed, raw_call


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """A node that whatever is said to it does not harm, so that all may be said to one."""
    with simulated(2) as node:
        yield node


RECV, SEND, TAKE, PING = (packed(method) for method in (":recv!", ":send!", ":take!", ":ping"))
ID, SECOND, TOPIC = b"\x07", packed(1000), packed("topic")

# What is wrong: the body of a frame, and the method, id and code of the error.
BAD = {
    "empty frame": (b"", ":error", None, "bad-frame"),
    "a byte that starts nothing": (b"\x93" + RECV + ID + b"\xc1", ":recv!", 7, "bad-frame"),
    "unknown method": (b"\x92" + packed(":fetch!") + ID, ":fetch!", 7, "unknown-method"),
    "unknown method, long": (b"\x92" + packed("m" * 5000) + ID, ":error", 7, "unknown-method"),
    "method that is no text": (b"\x92\x05" + ID, ":error", 7, "unknown-method"),
    "method in capitals": (b"\x92" + packed(":PING") + ID, ":PING", 7, "unknown-method"),
    "method alone": (b"\x91" + packed(":fetch!"), ":fetch!", None, "unknown-method"),
    "recv without a topic": (b"\x93" + RECV + ID + SECOND, ":recv!", 7, "bad-arity"),
    "recv without an id": (b"\x91" + RECV, ":recv!", None, "bad-arity"),
    "recv with too much": (b"\x96" + RECV + ID + SECOND + TOPIC * 3, ":recv!", 7, "bad-arity"),
    "send without a value": (b"\x94" + SEND + ID + SECOND + TOPIC, ":send!", 7, "bad-arity"),
    "send with too much": (b"\x97" + SEND + ID + SECOND + TOPIC * 4, ":send!", 7, "bad-arity"),
    "send with far too much": (b"\xdc\x03\xe8" + SEND + ID + b"\xc0" * 998, ":send!", 7, "bad-arity"),
    "take without a group": (b"\x94" + TAKE + ID + SECOND + TOPIC, ":take!", 7, "bad-arity"),
    "take with too much": (b"\x96" + TAKE + ID + SECOND + TOPIC * 3, ":take!", 7, "bad-arity"),
    "tokens with an argument": (b"\x93" + packed(":tokens") + ID + b"\x00", ":tokens", 7, "bad-arity"),
    "hello without options": (b"\x92" + packed(":hello") + ID, ":hello", 7, "bad-arity"),
    "ping without an id": (b"\x91" + PING, ":ping", None, "bad-arity"),
    "cancel of nothing": (b"\x92" + packed(":cancel") + ID, ":cancel", 7, "bad-arity"),
    "topic of nothing": (b"\x92" + packed(":topic") + ID, ":topic", 7, "bad-arity"),
    "ack of nothing": (b"\x91" + packed(":ack"), ":ack", None, "bad-arity"),
    "hello with a list": (b"\x93" + packed(":hello") + ID + b"\x90", ":hello", 7, "bad-frame"),
    "hello with an option of a wrong type": (
        b"\x93" + packed(":hello") + ID + packed({"ack": 1}),
        ":hello",
        7,
        "bad-frame",
    ),
    "hello with options that Python has no form for": (
        b"\x93" + packed(":hello") + ID + b"\x81\x91\x01\x01",
        ":hello",
        7,
        "bad-frame",
    ),
    "id of 33 bytes": (b"\x94" + RECV + packed("i" * 32)[:34] + SECOND + TOPIC, ":recv!", None, "bad-id"),
    "ping with a long id": (b"\x92" + PING + packed("i" * 40), ":ping", None, "bad-id"),
    "cancel with a long id": (b"\x93" + packed(":cancel") + packed(b"i" * 400) + ID, ":cancel", None, "bad-id"),
    "topic of 4,097 bytes": (b"\x94" + RECV + ID + SECOND + packed("t" * 4094), ":recv!", 7, "bad-topic"),
    "topic of a send of 4,097 bytes": (
        b"\x95" + SEND + ID + SECOND + packed("t" * 4094) + ID,
        ":send!",
        7,
        "bad-topic",
    ),
    "group of 4,097 bytes": (b"\x95" + TAKE + ID + SECOND + TOPIC + packed("t" * 4094), ":take!", 7, "bad-topic"),
    "asked about a topic of 4,097 bytes": (
        b"\x93" + packed(":topic") + ID + packed("t" * 4094),
        ":topic",
        7,
        "bad-topic",
    ),
}


@pytest.mark.parametrize(("body", "method", "id", "code"), BAD.values(), ids=BAD)
def test_bad_calls_are_named_and_refused(connect: Clients, body: bytes, method: str, id: object, code: str) -> None:
    client = connect().greet()
    client.write(framed(body))
    error = client.refusal()
    assert (error.method, error.id, error.code) == (method, id, code)
    assert error.message
    # And the connection goes on.
    assert client.ask(":ping", 1) is True


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (packed(":recv"), "':recv'"),
        (packed(":recv" * 100), "of that name"),
        (packed(":re\n"), "of that name"),
        (packed(b":recv"), "of that name"),
        (packed(["a"]), "of that name"),
    ],
)
def test_who_calls_an_unknown_method_hears_which_and_what_to_do(connect: Clients, method: bytes, named: str) -> None:
    client = connect().greet()
    client.write(raw_call(method, ID))
    assert client.refusal().message == f'this node has no method {named}: see "extensions" in the answer to :hello'


def test_a_method_is_echoed_in_canonical_form(connect: Clients) -> None:
    client = connect()
    client.write(raw_call(b"\xd9\x06:recv!", ID))
    assert client.read_frame()[2:].startswith(b"\x93" + RECV + ID)


def test_values_at_the_limits_are_taken(connect: Clients, topic: str) -> None:
    client, other = connect(), connect()
    at_most = "t" * 4093
    value = b"\x91" * 512 + b"\xc0"
    client.write(raw_call(RECV, packed("i" * 31)[:33], SECOND, packed(at_most)))
    client.wait_until(at_most, receivers=1)
    other.write(raw_call(SEND, packed("i" * 31)[:33], SECOND, packed(at_most), value))
    assert client.read_frame()[2:] == b"\x93" + RECV + packed("i" * 31) + value
    assert other.reply() == [":send!", "i" * 31, True]


def test_the_sixteenth_unreadable_frame_is_answered_and_ends_the_connection(connect: Clients) -> None:
    client, other = connect(), connect()
    client.write(framed(b"\xc1") * 15)
    assert [client.refusal().code for _ in range(15)] == ["bad-frame"] * 15
    assert client.ask(":ping", 1) is True
    client.write(framed(b"\xc1") + raw_call(PING, ID))
    assert client.refusal().code == "bad-frame"
    client.wait_for_end()
    assert other.ask(":ping", 1) is True


def test_calls_that_are_refused_but_readable_never_end_the_connection(connect: Clients) -> None:
    client = connect()
    for _ in range(100):
        client.write(raw_call(packed(":fetch!"), ID) + raw_call(RECV, ID))
        assert [client.refusal().code for _ in range(2)] == ["unknown-method", "bad-arity"]
    assert client.ask(":ping", 1) is True


def test_a_client_of_another_protocol_gets_an_error_or_an_end(connect: Clients) -> None:
    client = connect()
    client.write(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
    # "GE" is the length of a frame of 18,245 bytes: the node waits for the rest of it.
    client.write(b"x" * 20_000)
    assert client.refusal().code == "bad-frame"
