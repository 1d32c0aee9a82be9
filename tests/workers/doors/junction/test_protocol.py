"""What the published documents say, byte for byte, and every call's answer, on 1, 2 and 4 workers."""

from __future__ import annotations

import itertools
import signal
from typing import Any

import msgpack
import pytest

from skywalker.limits import MAX_TIMEOUT_MS
from tests.data import golden_frames
from tests.helpers import CLOCK, eventually
from tests.workers import operated
from tests.workers.staged import Node
from tests.workers.wire_client import TIMED_OUT, Clients, packed, raw_call

RECV = bytes.fromhex("001094a63a726563762101cd03e8a3666f6f")
SEND = bytes.fromhex("001495a63a73656e642102cd03e8a3666f6fa3626172")
RECV_FIRST = bytes.fromhex("001895a63a726563762101cd03e8a774696d656f7574a3666f6f")
SEND_FIRST = bytes.fromhex("001c96a63a73656e642102cd03e8a774696d656f7574a3666f6fa3626172")
RECV_KEYWORD = bytes.fromhex("002595a63a726563762101cdea60c71203b1736b7977616c6b65722f74696d656f7574a3666f6f")

GOT = bytes.fromhex("000d93a63a726563762101a3626172")
MET = bytes.fromhex("000a93a63a73656e642102c3")
RECV_TIMED_OUT = bytes.fromhex("000c93a63a726563762101d45400")
RECV_FIRST_TIMED_OUT = bytes.fromhex("001193a63a726563762101a774696d656f7574")
RECV_KEYWORD_TIMED_OUT = bytes.fromhex("001e93a63a726563762101c71203b1736b7977616c6b65722f74696d656f7574")

# Every value of MessagePack in more forms than the shortest, and what no library of today knows.
VALUES = {
    "nil": "c0",
    "false": "c2",
    "true": "c3",
    "5 in nine bytes": "cf0000000000000005",
    "-1 in five bytes": "d2ffffffff",
    "float 32": "ca3fc00000",
    "NaN with a payload": "cb7ff8000000000123",
    "str with a long header": "db00000003666f6f",
    "str that is no UTF-8": "a2fffe",
    "bin with a long header": "c600000001ff",
    "empty bin": "c400",
    "empty array": "90",
    "array with a long header": "dd0000000101",
    "map with equal keys": "8201020103",
    "map with an array as key": "8191010a",
    "empty ext": "c70042",
    "ext of type -128": "d48000",
    "a Clojure keyword": "c70303a2" + b"ok".hex(),
    "timestamp of an odd length": "c703ff010203",
}


def test_the_vectors_here_are_the_golden_ones() -> None:
    here = {RECV, SEND, RECV_FIRST, SEND_FIRST, RECV_KEYWORD, GOT, MET}
    here |= {RECV_TIMED_OUT, RECV_FIRST_TIMED_OUT, RECV_KEYWORD_TIMED_OUT}
    assert here == {frame.wire for frame in golden_frames()}


@pytest.mark.parametrize("send", [SEND, SEND_FIRST], ids=["current send", "first send"])
@pytest.mark.parametrize("recv", [RECV, RECV_FIRST, RECV_KEYWORD], ids=["current recv", "first recv", "keyword recv"])
@pytest.mark.parametrize("sender_comes_first", [True, False])
def test_published_calls_of_both_dialects_meet_each_other(
    connect: Clients, send: bytes, recv: bytes, sender_comes_first: bool
) -> None:
    sender, receiver = connect(), connect()
    if sender_comes_first:
        sender.write(send)
        receiver.wait_until("foo", senders=1)
        receiver.write(recv)
    else:
        receiver.write(recv)
        sender.wait_until("foo", receivers=1)
        sender.write(send)
    assert receiver.read_frame() == GOT
    assert sender.read_frame() == MET


def test_published_receives_time_out_with_the_published_bytes(connect: Clients) -> None:
    # The keyword's call is published with a minute; here it has a second, like the others.
    calls = {
        RECV: RECV_TIMED_OUT,
        RECV_FIRST: RECV_FIRST_TIMED_OUT,
        RECV_KEYWORD.replace(b"\xcd\xea\x60", b"\xcd\x03\xe8"): RECV_KEYWORD_TIMED_OUT,
    }
    clients = [(connect(), answer) for answer in calls.values()]
    for call, (client, _) in zip(calls, clients, strict=True):
        client.write(call)
    for client, answer in clients:
        assert client.read_frame() == answer


def test_a_send_times_out_in_its_own_dialect(connect: Clients, topic: str) -> None:
    client = connect()
    assert client.ask(":send!", 1, 10, topic, "value") == TIMED_OUT
    assert client.ask(":send!", 2, 10, {"any": ["value"]}, topic, "value") == {"any": ["value"]}
    assert client.ask(":send!", 3, 10, None, topic, "value") is None


def test_a_send_waits_for_as_long_as_a_call_may_and_no_longer() -> None:
    day_s = MAX_TIMEOUT_MS / 1000
    with operated.node(workers=2, idle_probe_s=day_s) as running:
        client = running.connect_to(0)
        sends = [client.begin(":send!", MAX_TIMEOUT_MS, client.topic_owned_by(slot), "value") for slot in (0, 1)]
        client.answer(":ping")
        called_at = CLOCK.monotonic()
        # Nobody has turns meanwhile, which would take their time.
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in (running.pid, *running.first_workers):
                running.kill(pid, number)
            if number == signal.SIGSTOP:
                CLOCK.sleep(day_s - 5.0)
        assert client.answer(":ping") is True
        assert not client.has_input(4.0)
        assert [client.result(send) for send in sends] == [TIMED_OUT] * 2
        assert day_s - 0.1 < CLOCK.monotonic() - called_at < day_s + 0.1


def test_tokens_are_sorted_signed_and_the_same_at_every_worker(node: Node, connect: Clients) -> None:
    answers = [connect(worker=worker).ask(":tokens", "t") for worker in range(node.workers)]
    for tokens in answers:
        assert tokens == sorted(set(tokens))
        assert tokens == node.tokens
        assert all(-(2**63) <= token < 2**63 for token in tokens)


def test_hello_tells_the_worker_and_what_every_worker_owns(node: Node, connect: Clients) -> None:
    for worker in range(node.workers):
        greeting = connect(worker=worker).ask(":hello", 7, {"name": "tester"})
        assert greeting["worker"] == worker
        assert greeting["workers"] == node.workers
        assert greeting["tokens"].keys() == set(range(node.workers))
        assert sorted(itertools.chain(*greeting["tokens"].values())) == node.tokens
        assert greeting["limits"]["frame"] == 65_535
        assert {"take", "cancel", "ack", "ping", "topic"} <= set(greeting["extensions"])


def test_a_name_is_at_most_255_characters(connect: Clients) -> None:
    client = connect()
    assert client.ask(":hello", 1, {"name": 255 * "\u20ac"})["workers"]
    client.call(":hello", 2, {"name": 256 * "x"})
    refused = client.refusal()
    assert (refused.code, refused.details) == ("bad-frame", {"size": 256, "limit": 255})


def test_hello_takes_options_it_does_not_know(connect: Clients) -> None:
    assert connect().ask(":hello", 1, {"colour": "red", "token": "secret"})["workers"]


@pytest.mark.parametrize("options", [{1: True}, {"log": {1: True}}, ["name"], None])
def test_options_are_named_by_strings_and_who_names_them_otherwise_is_told_so(connect: Clients, options: Any) -> None:
    client = connect()
    client.call(":hello", 1, options)
    refused = client.refusal()
    assert refused.code == "bad-frame"
    assert refused.message == "the options are a map, in which names are strings"


def test_ping_is_true_and_an_answer_to_a_ping_is_not_answered(connect: Clients) -> None:
    client = connect()
    assert client.ask(":ping", "p") is True
    client.call(":ping", None, True)
    assert client.ask(":ping", 2) is True


def test_topic_counts_who_waits(connect: Clients, topic: str) -> None:
    client, other = connect(), connect()
    nobody = {"receivers": 0, "takers": {}, "senders": 0, "subscribers": 0, "age": 0}
    assert client.info(topic) == nobody
    other.call(":recv!", 1, 60_000, topic)
    other.call(":take!", 2, 60_000, topic, "red")
    other.call(":take!", 3, 60_000, topic, "red")
    other.call(":take!", 4, 60_000, topic, 5)
    client.wait_until(topic, receivers=1, takers={"red": 2, 5: 1}, senders=0)
    eventually(lambda: client.info(topic)["age"] > 20)
    other.close()
    eventually(lambda: client.info(topic) == nobody)
    sender = connect()
    sender.call(":send!", 1, 60_000, topic, "x")
    client.wait_until(topic, receivers=0, senders=1)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_passes_untouched(connect: Clients, topic: str, value: str) -> None:
    sender, receiver = connect(), connect()
    raw = bytes.fromhex(value)
    receiver.write(raw_call(packed(":recv!"), b"\x01", packed(5000), packed(topic)))
    sender.write(raw_call(packed(":send!"), b"\x02", packed(5000), packed(topic), raw))
    assert receiver.read_frame()[2:] == b"\x93" + packed(":recv!") + b"\x01" + raw
    assert sender.reply() == [":send!", 2, True]


def test_arguments_may_be_encoded_at_length(connect: Clients, topic: str) -> None:
    sender, receiver = connect(), connect()
    text = topic.encode()
    long_topic = b"\xdb" + len(text).to_bytes(4, "big") + text
    receiver.write(
        raw_call(b"\xd9\x06:recv!", b"\xcf" + (1).to_bytes(8, "big"), b"\xd3" + bytes(6) + b"\x13\x88", long_topic)
    )
    sender.wait_until(topic, receivers=1)
    sender.write(
        raw_call(b"\xdb\0\0\0\x06:send!", b"\xcd\x00\x02", b"\xca\x45\x9c\x40\x00", packed(topic), packed("bar"))
    )
    answer = receiver.read_frame()[2:]
    assert msgpack.unpackb(answer) == [":recv!", 1, "bar"]
    # The id is the caller's own bytes.
    assert answer.endswith(b"\xcf" + (1).to_bytes(8, "big") + packed("bar"))
    assert msgpack.unpackb(sender.read_frame()[2:]) == [":send!", 2, True]


def test_the_array_itself_may_have_a_long_header(connect: Clients) -> None:
    client = connect()
    for header in (b"\xdc\x00\x02", b"\xdd\x00\x00\x00\x02"):
        body = header + packed(":ping") + b"\x01"
        client.write(len(body).to_bytes(2, "big") + body)
        assert client.reply() == [":ping", 1, True]
