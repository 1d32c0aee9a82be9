"""What every client does, whatever its colour, in process or at a node."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import msgpack
import pytest

import skywalker
from tests.clients.driving import Driver, Place, background
from tests.helpers import eventually, time_factor

SOON = 10.0

VALUES = [
    None, True, False, 0, -1, 2**64 - 1, -(2**63), 1.5, "", "text", b"", b"\xff\0", [], [1, [2, [3]]], {},
    {"a": {1: None}}, "x" * 60_000, b"y" * 65_000, "\udcff not utf-8",
    msgpack.ExtType(5, b"own"), [msgpack.ExtType(0x54, b"\0")],
    {"error": msgpack.ExtType(0x45, b"\x93")},
]  # fmt: skip

TOPICS = [None, True, 1, 1.0, "", "1", b"1", [1, "a"], {"a": [None]}, "t" * 4000, msgpack.ExtType(3, b"\xa1k")]


@pytest.fixture
def one(place: Place) -> Driver:
    return place.join()


@pytest.fixture
def other(place: Place) -> Driver:
    return place.join()


def waits(junction: Driver, topic: Any, kind: str, count: int = 1) -> None:
    """Return once so many calls of a kind wait on a topic."""
    eventually(lambda: junction.topic(topic)[kind] == count, within=SOON)


def result(future: Future[Any]) -> Any:
    return future.result(SOON * time_factor())


# Meeting.


def test_a_sender_that_waits_meets_the_receiver_that_comes(one: Driver, other: Driver, topic: str) -> None:
    sent = background(lambda: one.send(topic, "late", timeout=SOON))
    waits(other, topic, "senders")
    assert other.recv(topic, timeout=SOON) == "late"
    assert result(sent) is True


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_value_arrives_as_it_was_sent(one: Driver, other: Driver, topic: str, value: Any) -> None:
    call = one.begin("recv", topic, timeout=SOON)
    assert other.send(topic, value, timeout=SOON)
    got = call.result()
    assert got == value
    assert type(got) is type(value)


def test_anything_can_be_a_topic_and_no_two_are_confused(one: Driver, other: Driver, topic: str) -> None:
    calls = [one.begin("recv", [topic, each], timeout=SOON) for each in TOPICS]
    for number, each in reversed(list(enumerate(TOPICS))):
        assert other.send([topic, each], number, timeout=SOON)
    assert [call.result() for call in calls] == list(range(len(TOPICS)))


def test_a_value_reaches_receivers_and_one_taker_of_each_group(place: Place, topic: str) -> None:
    listeners = place.join()
    receivers = [listeners.begin("recv", topic, timeout=SOON) for _ in range(2)]
    takers = [listeners.begin("take", topic, group=group, timeout=SOON) for group in ("a", "a", "b")]
    sender = place.join()
    eventually(lambda: sender.topic(topic)["takers"] == {"a": 2, "b": 1}, within=SOON)
    assert sender.send(topic, "v", timeout=SOON)
    assert [call.result() for call in receivers] == ["v", "v"]
    eventually(lambda: sum(call.done() for call in takers) == 2, within=SOON)
    assert sender.topic(topic)["takers"] == {"a": 1}
    assert sender.send(topic, "w", timeout=SOON)
    assert sorted(call.result() for call in takers) == ["v", "v", "w"]


@pytest.mark.parametrize(
    "options", [{"ack": True, "name": "tester"}, {"dialect": "first"}, {"dialect": "first", "ack": True}]
)
def test_clients_meet_whatever_their_dialect_and_whether_they_acknowledge(
    place: Place, other: Driver, topic: str, options: dict[str, Any]
) -> None:
    one = place.join(**options)
    assert one.recv(topic, timeout=0, default="nobody") == "nobody"
    for kind, number in (("recv", 1), ("take", 2)):
        # Somebody waits for it, for a blocking client reads, and thus acknowledges, only while it is used.
        got = background(one.begin(kind, topic, timeout=SOON).result)
        assert other.send(topic, number, timeout=SOON) is True
        assert result(got) == number
    call = other.begin("recv", topic, timeout=SOON)
    assert one.send(topic, 3, timeout=SOON) is True
    assert call.result() == 3


# Time.


@pytest.mark.parametrize("timeout", [0, 0.0, 0.05, 0.2])
def test_a_call_that_meets_nobody_times_out_in_its_time(one: Driver, topic: str, timeout: float) -> None:
    for call in (
        lambda: one.send(topic, 1, timeout=timeout),
        lambda: one.recv(topic, timeout=timeout),
        lambda: one.take(topic, timeout=timeout),
    ):
        began = time.monotonic()
        with pytest.raises(skywalker.TimedOut, match=topic) as caught:
            call()
        took = time.monotonic() - began
        assert timeout <= took < timeout + 0.4 * time_factor()
        assert isinstance(caught.value, TimeoutError)


def test_a_default_is_returned_in_place_of_a_timeout_even_none(one: Driver, topic: str) -> None:
    assert one.send(topic, 1, timeout=0, default=None) is None
    assert one.recv(topic, timeout=0, default=None) is None
    assert one.take(topic, timeout=0, default="nothing") == "nothing"


@pytest.mark.parametrize("timeout", [-1, -0.001, 86_400.1, float("nan"), float("inf"), "1", None, [1]])
def test_a_timeout_that_is_not_allowed_is_refused_with_the_range(one: Driver, topic: str, timeout: Any) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="0 to 86400"):
        one.recv(topic, timeout=timeout)
    with pytest.raises(ValueError, match="0 to 86400"):
        one.send(topic, 1, timeout=timeout)
    with pytest.raises(skywalker.LocalProtocolError, match="0 to 86400"):
        one.ping(timeout=timeout)
    with pytest.raises(skywalker.LocalProtocolError, match="0 to 86400"):
        one.topic(topic, timeout=timeout)
    with pytest.raises(skywalker.LocalProtocolError, match="0 to 86400"):
        one.nodes(timeout=timeout)
    with pytest.raises(skywalker.LocalProtocolError, match="0 to 86400"):
        one.sharded(topic, 2).take(timeout=timeout)


# Calls under way.


def test_a_call_that_waits_can_be_cancelled_and_then_meets_nobody(one: Driver, other: Driver, topic: str) -> None:
    call = one.begin("recv", topic, timeout=SOON)
    waits(other, topic, "receivers")
    assert call.done() is False
    assert one.cancel(call) is True
    assert call.done() is True
    with pytest.raises(skywalker.Cancelled):
        call.result()
    # Another worker may own the topic, and hear of it a moment later.
    waits(other, topic, "receivers", 0)


def test_cancelling_what_has_ended_is_false_and_changes_nothing(one: Driver, other: Driver, topic: str) -> None:
    call = one.begin("recv", topic, timeout=SOON)
    assert other.send(topic, 1, timeout=SOON)
    assert call.result() == 1
    assert one.cancel(call) is False
    assert call.result() == 1


def test_a_call_nobody_waits_for_is_done_all_the_same(one: Driver, other: Driver, topic: str) -> None:
    call = one.begin("send", topic, 1, timeout=SOON)
    assert other.recv(topic, timeout=SOON) == 1
    eventually(call.done, within=SOON)
    assert call.result() is True


def test_a_call_begun_expires_though_nobody_waits_for_it(one: Driver, topic: str) -> None:
    call = one.begin("recv", topic, timeout=0.05)
    eventually(call.done, within=SOON)
    with pytest.raises(skywalker.TimedOut):
        call.result()


def test_begin_refuses_what_does_not_fit_together(one: Driver, topic: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="value"):
        one.begin("send", topic)
    with pytest.raises(skywalker.LocalProtocolError, match="value"):
        one.begin("recv", topic, 1)
    with pytest.raises(skywalker.LocalProtocolError, match="publish"):
        one.begin("publish", topic)


# What cannot be sent, or received.


def test_a_call_too_large_for_a_frame_is_refused_with_size_and_limit(one: Driver, topic: str) -> None:
    with pytest.raises(skywalker.TooLarge, match=r"7\d{4} bytes, limit is 65535") as caught:
        one.send(topic, b"x" * 70_000)
    assert caught.value.details["limit"] == 65535
    assert one.ping() is True


@pytest.mark.parametrize(
    "value", [msgpack.ExtType(0x54, b"\0"), msgpack.ExtType(0x54, b"\1"), msgpack.ExtType(0x45, b"")], ids=repr
)
def test_a_value_that_looks_like_the_nodes_own_answer_is_refused(one: Driver, topic: str, value: Any) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="reserved"):
        one.send(topic, value)


def test_a_topic_over_its_limit_is_refused_and_costs_nothing_else(one: Driver, other: Driver, topic: str) -> None:
    waiting = one.begin("recv", topic, timeout=SOON)
    with pytest.raises(skywalker.BadTopic, match="4096"):
        one.recv("t" * 5000)
    assert other.send(topic, 1, timeout=SOON)
    assert waiting.result() == 1


def test_a_value_python_cannot_hold_fails_its_own_call_only(one: Driver, other: Driver, topic: str) -> None:
    class ListAsKey(dict[Any, Any]):
        """A map whose key is a list, as other languages send it."""

        def items(self) -> Any:
            return [([1], 2)]

    waiting = one.begin("recv", topic, timeout=SOON)
    bad = one.begin("recv", [topic, "bad"], timeout=SOON)
    assert other.send([topic, "bad"], ListAsKey(x=1), timeout=SOON)
    with pytest.raises(skywalker.RemoteProtocolError, match="cannot be represented in Python: a map has a key"):
        bad.result()
    assert other.send(topic, 1, timeout=SOON)
    assert waiting.result() == 1


# The node.


def test_a_node_has_sorted_tokens_and_answers_ping_and_hello(one: Driver) -> None:
    tokens = one.tokens()
    assert tokens == sorted(set(tokens))
    assert tokens
    assert all(-(2**63) <= token < 2**63 for token in tokens)
    assert one.ping() is True
    greeting = one.hello()
    assert sorted(token for owned in greeting["tokens"].values() for token in owned) == tokens
    assert 0 <= greeting["worker"] < greeting["workers"]


def test_a_node_that_is_in_no_cluster_tells_of_itself(one: Driver) -> None:
    [node] = one.nodes()
    assert node["tokens"] == one.tokens()
    assert node["workers"] == one.hello()["workers"]
    assert node.keys() == {"id", "name", "address", "port", "workers", "steering", "tokens", "slicing"}


def test_topic_tells_whatever_groups_there_are(place: Place, topic: str) -> None:
    takers, asker = place.join(), place.join()
    groups = ("a", [1, [2]], {"b": [3]})
    calls = [takers.begin("take", topic, group=group, timeout=SOON) for group in (*groups, [1, [2]])]
    waits(asker, topic, "takers", {"a": 1, (1, (2,)): 2, (("b", (3,)),): 1})  # type: ignore[arg-type]
    assert asker.topic(topic) | {"takers": {}, "age": 0} == {
        "receivers": 0, "takers": {}, "senders": 0, "subscribers": 0, "age": 0
    }  # fmt: skip
    assert all(takers.cancel(call) for call in calls)


def test_topic_counts_who_waits_and_for_how_long(one: Driver, other: Driver, topic: str) -> None:
    nobody = other.topic(topic)
    assert nobody == {"receivers": 0, "takers": {}, "senders": 0, "subscribers": 0, "age": 0}
    calls = [one.begin("send", topic, 1, timeout=SOON) for _ in range(3)]
    waits(other, topic, "senders", 3)
    eventually(lambda: other.topic(topic)["age"] >= 20, within=SOON)
    assert all(one.cancel(call) for call in calls)
    assert other.topic(topic) == nobody


# Values, one after another.


def test_values_come_one_after_another_until_none_comes_for_a_while(one: Driver, other: Driver, topic: str) -> None:
    calls = [other.begin("send", topic, number, timeout=SOON) for number in range(10)]
    assert list(one.values(topic, timeout=0.3)) == list(range(10))
    assert all(call.result() is True for call in calls)


def test_leaving_the_loop_over_values_leaves_no_call_behind(one: Driver, other: Driver, topic: str) -> None:
    calls = [other.begin("send", topic, number, timeout=SOON) for number in range(3)]
    for value in one.values(topic, group="g"):
        if value == 1:
            break
    assert other.topic(topic) | {"age": 0} == {"receivers": 0, "takers": {}, "senders": 1, "subscribers": 0, "age": 0}
    assert one.recv(topic, timeout=SOON) == 2
    assert all(call.result() is True for call in calls)


# Requests.


FAILING = {
    0: "ZeroDivisionError",
    "unsayable": "^Unsayable$",
    "unsendable": "LocalProtocolError",
    b"x": "limit",
}
"""With what requests for these values fail."""


class Unsayable(Exception):
    """An error with a text that cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_request_has_what_the_handler_returns_or_fails_and_the_server_serves_on(
    place: Place, one: Driver, topic: str
) -> None:
    def handle(value: Any) -> Any:
        match value:
            case "unsayable":
                raise Unsayable
            case "unsendable":
                return object()
            case int(number):
                return 1 / number
            case bytes(piece):
                return piece * 100_000
        return [value, value]

    server = place.join()
    serving = background(lambda: server.serve(topic, handle, timeout=0.5))
    assert one.send(topic, "no request", timeout=SOON)
    for value, said in FAILING.items():
        with pytest.raises(skywalker.HandlerFailed, match=said):
            one.request(topic, value, timeout=SOON)
    for value in ("a", None):
        assert one.request(topic, value, timeout=SOON) == [value, value]
    assert result(serving) is None


def test_what_another_program_says_of_its_failure_is_not_told_at_any_length(
    place: Place, one: Driver, topic: str
) -> None:
    asked = background(lambda: one.request(topic, 1, timeout=SOON))
    server = place.join()
    request = server.recv(topic, timeout=SOON)
    assert server.send(request["reply"], {"error": "x" * 9000}, timeout=SOON)
    with pytest.raises(skywalker.HandlerFailed, match=r"^x{1000}$"):
        result(asked)


# The end.


def test_closing_ends_calls_under_way_and_refuses_new_ones(place: Place, topic: str) -> None:
    junction = place.join()
    call = junction.begin("recv", topic, timeout=SOON)
    waiting = background(lambda: junction.recv([topic, 1], timeout=SOON))
    serving = background(lambda: junction.serve([topic, 2], lambda value: value))
    eventually(lambda: junction.topic([topic, 1])["receivers"] == 1, within=SOON)
    eventually(lambda: junction.topic([topic, 2])["takers"] == {"": 1}, within=SOON)
    junction.close()
    with pytest.raises(skywalker.Closed):
        call.result()
    with pytest.raises(skywalker.Closed):
        result(waiting)
    assert result(serving) is None
    with pytest.raises(skywalker.Closed):
        junction.ping()
    junction.close()
