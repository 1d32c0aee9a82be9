"""What no peer should send: it is counted and dropped or refused, and the node goes on as if nothing had been."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psutil
import pytest

from skywalker.silk import blocking
from tests.silk.conftest import Peers
from tests.silk.driving import insist
from tests.silk.ground import eventually
from tests.silk.raw_peer import RawPeer

MIB = 1024 * 1024
DEEP = b"[" * 100_000


@pytest.fixture(autouse=True)
def goes_on(node: blocking.Node, member: RawPeer, peers: Peers) -> Any:
    """After each test here the node does all that it did before."""
    node.handle("echo", lambda data: data)
    yield
    assert member.answer_to(member.send(node.info.router, "echo", node.id, data="after"))["data"] == "after"
    newcomer = peers(name="newcomer")
    assert member.id in newcomer.join(node.info.router)["data"]["cluster"]


def fields(**changed: Any) -> bytes:
    """Return a message that would be taken for one, but for what is changed; None leaves a field out."""
    message = {"src": "s", "dest": "", "id": "i", "type": "_members"} | changed
    return json.dumps({name: value for name, value in message.items() if value is not None}).encode()


NO_MESSAGES = [
    b"",
    b'{"src": ',
    DEEP,
    fields(data=0)[:-2] + DEEP,
    fields(src=None),
    fields(src="\ud800"),
    fields(data="x" * (MIB - len(fields(data="")) + 1)),
    fields(data="x" * 2 * MIB),
]
"""What tests/wire/test_silk.py has more of."""


def test_what_is_no_message_is_counted_and_dropped(node: blocking.Node, raw: RawPeer) -> None:
    for frame in NO_MESSAGES:
        raw.send_frames(node.info.router, frame)
    eventually(lambda: node.dropped == len(NO_MESSAGES))
    assert raw.replies(0.02) == []


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([b"", fields()], id="a delimiter, as REQ has it"),
        pytest.param([fields(), fields()], id="two messages"),
        pytest.param([b""] * 1000, id="a thousand that are empty"),
    ],
)
def test_more_than_one_frame_is_no_message(node: blocking.Node, raw: RawPeer, frames: list[bytes]) -> None:
    raw.send_frames(node.info.router, *frames)
    eventually(lambda: node.dropped == 1)


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([b"_ka"], id="a type alone"),
        pytest.param([b"_ka", b"{", b"}"], id="three frames"),
        pytest.param([b"_ka", b"{"], id="no JSON"),
        pytest.param([b"_ka", fields(type="_ka", src="\ud800")], id="half a character"),
        pytest.param([b"_", fields(type="_ka", data="x" * 2 * MIB)], id="2 MiB"),
        pytest.param([b"_fail", fields(dest="_all", type="_fail")], id="the failure of nobody"),
        pytest.param([b"_fail", fields(dest="_all", type="_fail", data={"id": ["x"]})], id="the failure of a list"),
        pytest.param([b"_oh", fields(dest="_all", type="_oh")], id="an internal type that there is not"),
    ],
)
def test_what_makes_no_sense_as_a_broadcast_is_dropped(
    node: blocking.Node, member: RawPeer, frames: list[bytes]
) -> None:
    insist(lambda: member.publish_frames(*frames), until=lambda: node.dropped)
    # What comes after that is heard.
    member.publish("_leave")
    eventually(lambda: not node.members)
    member.join(node.info.router)


def test_who_sends_8_mib_is_cut_off_and_may_come_again(node: blocking.Node, member: RawPeer) -> None:
    before = psutil.Process().memory_info().rss
    member.send_frames(node.info.router, fields(data="x" * 8 * MIB))
    # What was sent on that connection may be lost with it.
    assert eventually(lambda: member.answer_to(member.send(node.info.router, "echo", node.id, data=1), 0.2))
    assert psutil.Process().memory_info().rss - before < 64 * MIB


def test_a_message_of_1_mib_is_handled_and_answered_if_the_reply_fits(node: blocking.Node, member: RawPeer) -> None:
    node.handle("length", len)
    message = {"src": member.id, "dest": node.id, "id": str(uuid.uuid4()), "type": "length", "data": ""}
    message["data"] = "x" * (MIB - len(json.dumps(message)))
    frame = json.dumps(message).encode()
    assert len(frame) == MIB
    member.send_frames(node.info.router, frame)
    assert member.answer_to(message["id"])["data"] == len(message["data"])
    message |= {"type": "echo", "id": str(uuid.uuid4())}
    member.send_frames(node.info.router, json.dumps(message).encode())
    # `parent` makes a reply longer than its request.
    assert member.answer_to(message["id"])["data"]["code"] == "failed"


def test_a_member_that_answers_nonsense_is_heard_all_the_same(node: blocking.Node, member: RawPeer) -> None:
    answers: list[Any] = [
        None,
        [],
        {"cluster": 7},
        {"cluster": {"a": 7, "b": {"id": "b"}}, "me": member.info},
        {"me": []},
    ]
    for data in answers:
        member.reply(node.info.router, {"id": "unasked", "src": node.id}, data)
    eventually(lambda: node.dropped == 4)
    assert set(node.members) == {member.id}
