"""Requests in simulated time: sent as often as declared, to the node with the least to do, and ended once."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from skywalker.deadlines import PRECISION_S
from skywalker.errors import HandlerFailed, NobodyHandles, NoReply, TimedOut
from skywalker.silk.info import Handling, NodeInfo
from skywalker.silk.requests import Requests
from skywalker.wire.silk import FAILED, REPLY, UNKNOWN_TYPE, Message

START_S = 1000.0
STEP_S = 1e-4


def node(id: str, handles: Mapping[str, Handling] | None = None) -> NodeInfo:
    return NodeInfo(id, "", f"tcp://{id}:1", f"tcp://{id}:2", messages=handles or {"resize": Handling(3, 1.0)})


def request(id: str, dest: str = "a", type: str = "resize") -> Message:
    return Message("me", dest, id, type, {"n": 1})


def reply(to: str, data: Any = None, src: str = "a") -> Message:
    return Message(src, "me", f"re {to}", REPLY, data, reply=to)


def attempts(requests: Requests, until: float, now: float = START_S) -> list[tuple[float, Message]]:
    """Let time pass as wait() says, and return what is sent and when."""
    sent = [(now, message) for message in requests.messages()]
    while (wait := requests.wait(now)) is not None and now + wait <= until:
        now += max(wait, STEP_S)
        requests.tick(now)
        sent += [(now, message) for message in requests.messages()]
    return sent


def assert_nothing_is_left(requests: Requests) -> None:
    assert requests.wait(START_S) is None
    assert requests.messages() == []
    assert requests.ended() == []
    assert (requests._requests, requests._outstanding, len(requests._deadlines)) == ({}, {}, 0)


@pytest.mark.parametrize(("times", "period_s"), [(1, 0.2), (3, 1.0), (4, 0.05), (100, 0.5)])
def test_a_request_is_sent_as_often_and_as_far_apart_as_its_type_declares(times: int, period_s: float) -> None:
    requests = Requests(random.Random(1).random)
    asked = requests.begin(node("a", {"resize": Handling(times, period_s)}), request("1"), START_S)
    sent = attempts(requests, START_S + 1000)
    assert [message for _, message in sent] == [request("1")] * times, "always with the same id"
    for (one, _), (other, _) in itertools.pairwise(sent):
        assert period_s < other - one <= period_s + PRECISION_S
    (ended,) = requests.ended()
    assert ended is asked
    assert isinstance(ended.error, NoReply)
    assert isinstance(ended.error, TimedOut)
    for words in ("tcp://a:1", "'resize'", "once" if times == 1 else f"{times} times", f"{times * period_s:g} s"):
        assert words in str(ended.error)
    assert_nothing_is_left(requests)


def test_a_type_that_a_node_does_not_declare_is_sent_once() -> None:
    requests = Requests(random.Random(1).random)
    requests.begin(node("a"), request("1", type="other"), START_S)
    assert len(attempts(requests, START_S + 1000)) == 1
    (ended,) = requests.ended()
    assert isinstance(ended.error, NoReply)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"error": "no room"}, HandlerFailed),
        ({"error": "no room", "code": FAILED}, HandlerFailed),
        ({"error": "no room", "code": UNKNOWN_TYPE}, NobodyHandles),
        ({"error": "no room", "code": "of another program"}, HandlerFailed),
        ({"error": "no room", "code": ["odd"]}, HandlerFailed),
        ({"error": None}, HandlerFailed),
        ({"error": {"deep": [1]}, "x": 1}, HandlerFailed),
    ],
)
def test_an_error_is_told_with_its_text_and_who_said_it(data: dict[str, Any], error: type[Exception]) -> None:
    requests = Requests(random.Random(1).random)
    requests.begin(node("a"), request("1"), START_S)
    assert len(requests.messages()) == 1
    assert requests.received(reply("1", data))
    (ended,) = requests.ended()
    assert type(ended.error) is error
    assert str(ended.error) == f"a: {data['error']}"
    assert_nothing_is_left(requests)


def test_an_error_is_not_told_at_any_length() -> None:
    requests = Requests(random.Random(1).random)
    requests.begin(node("a"), request("1"), START_S)
    assert requests.received(reply("1", {"error": "x" * 9000}))
    (ended,) = requests.ended()
    assert str(ended.error) == "a: " + "x" * 1000


def test_who_has_the_fewest_outstanding_is_chosen_whoever_had_the_last_turn() -> None:
    requests = Requests(random.Random(1).random)
    nodes = [node(id) for id in "abc"]
    for number, id in enumerate("abcabc"):
        requests.begin(node(id), request(str(number), id), START_S)
    requests.received(reply("1", src="b"))
    assert requests.choose("resize", nodes).id == "b"
    assert requests.choose("resize", nodes).id == "b", "choosing alone is no load"
    requests.gone("c", "has failed")
    assert requests.choose("resize", nodes).id == "c", "what has ended is no load either"


def test_not_all_who_begin_at_once_begin_with_the_same_node() -> None:
    nodes = [node(id) for id in "abc"]
    first = Counter(Requests(random.Random(seed).random).choose("resize", nodes).id for seed in range(300))
    assert min(first[id] for id in "abc") > 70, first
