"""Every message of the dialect in raw JSON, between a node of ours and peers that know nothing of our code."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import pytest

from skywalker.errors import NoReply
from skywalker.silk import blocking
from tests.clients.driving import background
from tests.helpers import eventually, time_factor
from tests.silk.conftest import Peers
from tests.silk.driving import insist, keepalive
from tests.silk.raw_peer import Fields, RawPeer

REAL = True
"""What only real sockets, threads or clocks show."""

ATTEMPTS = 3


def is_uuid4(text: str) -> bool:
    return str(uuid.UUID(text, version=4)) == text


def object_of(node: blocking.Node) -> Fields:
    """Return what a node of ours is to say of itself, if it handles nothing."""
    return {
        "id": node.id,
        "name": "ours",
        "endpoints": {"router": node.info.router, "pub": node.info.pub},
        "keepalive": {"period": round(keepalive() * 1000)},
        "messages": {},
    }


def brief(peer: RawPeer) -> Fields:
    return {name: peer.info[name] for name in ("id", "name", "endpoints")}


def pretend(peer: RawPeer, node: blocking.Node, within: float) -> None:
    """Show signs of life and answer questions, as the seed has it, for some seconds."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        peer.publish("_ka")
        for question in peer.silence(keepalive() / 2):
            if question["type"] == "_connect":
                peer.reply(node.info.router, question, peer.info)


def happenings(events: blocking.Events, count: int) -> list[tuple[str, str]]:
    """Return the next events, as pairs of what happened and to whom."""
    told = [events.next(5 * time_factor()) for _ in range(count)]
    return [(type(event).__name__, event.node.id) for event in told if event is not None]


# Coming, going, and signs of life.


@pytest.mark.parametrize("dest", ["id", "empty", "missing", "null"])
def test_a_join_is_answered_with_the_cluster_and_the_node(
    node: blocking.Node, member: RawPeer, peers: Peers, dest: str
) -> None:
    newcomer = peers(name="newcomer")
    to: dict[str, Any] = {"id": node.id, "empty": "", "missing": None}
    fields = json.loads('{"dest": null}') if dest == "null" else {"dest": to[dest]}
    reply = newcomer.join(node.info.router, **fields)
    asked = reply.pop("reply")
    assert reply.pop("parent") == asked
    assert is_uuid4(reply.pop("id"))
    assert is_uuid4(asked)
    assert reply == {
        "way": "router",  # it is a member by now, so this is where it takes messages
        "src": node.id,
        "dest": newcomer.id,
        "type": "_reply",
        "data": {"cluster": {member.id: brief(member)}, "me": object_of(node)},
    }
    assert set(node.members) == {member.id, newcomer.id}
    assert node.members[newcomer.id].name == "newcomer"


def test_a_connect_is_answered_with_the_node_alone(node: blocking.Node, member: RawPeer, peers: Peers) -> None:
    newcomer = peers()
    node.handle("resize", print, attempts=4, period=0.25)
    asked = newcomer.send(node.info.router, "_connect", node.id, data=newcomer.info)
    reply = newcomer.answer_to(asked)
    assert is_uuid4(reply.pop("id"))
    assert reply == {
        "way": "router",
        "src": node.id,
        "dest": newcomer.id,
        "type": "_reply",
        "data": object_of(node) | {"messages": {"resize": {"attempts": 4, "period": 250}}},
        "reply": asked,
        "parent": asked,
    }
    assert newcomer.id in node.members


def test_asking_for_the_members_joins_nothing(node: blocking.Node, member: RawPeer, peers: Peers) -> None:
    stranger = peers()
    reply = stranger.answer_to(stranger.send(node.info.router, "_members"))
    assert reply["way"] == "dealer"
    assert reply["data"] == {"cluster": {member.id: brief(member)}, "me": object_of(node)}
    assert set(node.members) == {member.id}


def test_a_node_of_ours_joins_a_raw_peer_and_connects_to_all_others_it_names(
    node: blocking.Node, raw: RawPeer, peers: Peers
) -> None:
    other = peers(name="other")
    node.seek(raw.endpoint)
    join = raw.asked("_join")
    assert (join["src"], join.get("dest", ""), join["data"]) == (node.id, "", object_of(node))
    assert is_uuid4(join["id"])
    assert "reply" not in join
    raw.reply(
        node.info.router,
        join,
        {"cluster": {other.id: brief(other)}, "me": brief(raw)},
        reply=None,
        parent=join["id"],
    )
    connect = other.asked("_connect")
    assert (connect["src"], connect["dest"], connect["data"]) == (node.id, other.id, object_of(node))
    # Nobody is a member by what a third says of it.
    assert set(node.members) == {raw.id}
    other.reply(node.info.router, connect, other.info)
    eventually(lambda: set(node.members) == {raw.id, other.id})


def test_signs_of_life_are_two_frames_of_which_the_first_is_the_type(node: blocking.Node, raw: RawPeer) -> None:
    raw.listen(node.info.pub)
    first, second = raw.heard("_ka"), raw.heard("_ka")
    assert [frames[0] for frames in (first, second)] == [b"_ka", b"_ka"]
    message = json.loads(first[1])
    assert message.pop("id") != json.loads(second[1])["id"]
    assert isinstance(message.pop("data")["cluster"], str)
    assert message == {"src": node.id, "dest": "_all", "type": "_ka"}


def test_a_node_that_leaves_says_so_to_all_and_then_nothing(node: blocking.Node, member: RawPeer) -> None:
    member.listen(node.info.pub)
    member.heard("_ka")
    node.leave()
    type, message = member.heard("_leave")
    left = json.loads(message)
    assert is_uuid4(left.pop("id"))
    assert (type, left) == (b"_leave", {"src": node.id, "dest": "_all", "type": "_leave"})
    with pytest.raises(AssertionError, match="no _ka was heard"):
        member.heard("_ka", within=4 * keepalive() / time_factor())
    asked = member.send(node.info.router, "_members")
    assert all(reply["reply"] != asked for reply in member.replies(0.1))


def test_a_peer_that_says_only_what_the_seed_says_is_a_member_for_good(node: blocking.Node, peers: Peers) -> None:
    peer = peers(keepalive_ms=round(keepalive() * 1000))
    events = node.events()
    peer.join(node.info.router, dest=node.id)
    pretend(peer, node, 12 * keepalive())
    assert set(node.members) == {peer.id}
    peer.publish("_leave")
    eventually(lambda: not node.members)
    assert happenings(events, 2) == [
        ("Joined", peer.id),
        ("Left", peer.id),
    ]


def test_a_peer_that_falls_silent_is_asked_and_then_given_up_and_all_are_told(
    node: blocking.Node, member: RawPeer, peers: Peers
) -> None:
    mute = peers(keepalive_ms=round(keepalive() * 1000))
    member.listen(node.info.pub)
    member.heard("_ka")
    joined_at = time.monotonic()
    mute.join(node.info.router)
    question = mute.asked("_connect")
    assert time.monotonic() - joined_at > 2.9 * keepalive()
    assert (question["dest"], question["data"]) == (mute.id, object_of(node))
    type, message = member.heard("_fail")
    assert time.monotonic() - joined_at > 3.9 * keepalive()
    failed = json.loads(message)
    assert is_uuid4(failed.pop("id"))
    assert (type, failed) == (
        b"_fail",
        {"src": node.id, "dest": "_all", "type": "_fail", "data": {"id": mute.id}},
    )
    assert set(node.members) == {member.id}


# Requests to a node of ours.


def test_a_request_is_answered_at_the_members_router(node: blocking.Node, member: RawPeer) -> None:
    node.handle("add", sum)
    asked = member.send(node.info.router, "add", node.id, data=[1, 2, 39])
    reply = member.answer_to(asked)
    assert is_uuid4(reply.pop("id"))
    assert reply == {
        "way": "router",
        "src": node.id,
        "dest": member.id,
        "type": "_reply",
        "data": 42,
        "reply": asked,
        "parent": asked,
    }


def test_a_reply_of_nothing_has_no_data(node: blocking.Node, member: RawPeer) -> None:
    node.handle("nothing", lambda data: None)
    assert "data" not in member.answer_to(member.send(node.info.router, "nothing", node.id))


def test_a_silent_message_is_handled_and_not_answered(node: blocking.Node, member: RawPeer) -> None:
    came: list[Any] = []
    node.handle("note", came.append)
    member.send(node.info.router, "note", node.id, data="x", silent=True)
    eventually(lambda: came == ["x"])
    assert member.replies(0.1) == []


def test_a_broadcast_is_handled_and_not_answered(node: blocking.Node, member: RawPeer) -> None:
    came: list[Any] = []
    node.handle("note", came.append)
    insist(lambda: member.publish("note", data="x"), until=lambda: came)
    assert set(came) == {"x"}
    assert member.replies(0.1) == []


@pytest.mark.parametrize(
    ("type", "code", "text"),
    [
        ("unheard-of", "unknown-type", "nobody handles 'unheard-of' here"),
        ("fails", "failed", "no such file: a.png"),
    ],
)
def test_what_cannot_be_done_is_told_with_a_code(
    node: blocking.Node, member: RawPeer, type: str, code: str, text: str
) -> None:
    def fails(data: Any) -> None:
        raise ValueError("no such file: a.png")

    node.handle("fails", fails)
    reply = member.answer_to(member.send(node.info.router, type, node.id))
    assert reply["data"] == {"error": text, "code": code}


def test_a_stranger_is_told_so_on_its_own_connection_and_no_handler_runs(node: blocking.Node, raw: RawPeer) -> None:
    came: list[Any] = []
    node.handle("note", came.append)
    asked = raw.send(node.info.router, "note", node.id, data="x")
    reply = raw.answer_to(asked)
    assert (reply["way"], reply["data"]["code"]) == ("dealer", "stranger")
    raw.send(node.info.router, "note", node.id, data="x", silent=True)
    assert raw.silence(0.1) == []
    assert came == []
    # Once it is a member, the very same request is a new one.
    raw.join(node.info.router)
    raw.send(node.info.router, "note", node.id, data="x", id=asked)
    assert "data" not in raw.answer_to(asked)
    assert came == ["x"]


def test_a_reply_to_one_who_has_left_meanwhile_goes_to_nobody_else(
    node: blocking.Node, member: RawPeer, peers: Peers
) -> None:
    may_end: list[bool] = []
    ended: list[bool] = []

    def slow(data: Any) -> str:
        eventually(lambda: may_end)
        ended.append(True)
        return "a secret"

    node.handle("slow", slow)
    member.send(node.info.router, "slow", node.id)
    insist(lambda: member.publish("_leave"), until=lambda: not node.members)
    stranger = peers()
    stranger.answer_to(stranger.send(node.info.router, "_members"))
    may_end.append(True)
    eventually(lambda: ended)
    assert stranger.silence(0.2) == []


# Requests of a node of ours.


def test_a_request_of_ours_is_sent_as_often_as_the_peer_declares(node: blocking.Node, raw: RawPeer) -> None:
    raw.messages = {"resize": {"attempts": ATTEMPTS, "period": round(50 * time_factor())}}
    raw.join(node.info.router)
    with pytest.raises(NoReply, match=f"did not answer 'resize', sent {ATTEMPTS} times"):
        node.request(raw.id, "resize", {"width": 200})
    sent = [raw.asked("resize") for _ in range(ATTEMPTS)]
    assert len({message["id"] for message in sent}) == 1
    assert is_uuid4(sent[0]["id"])
    assert sent[0] | {"id": ""} == {
        "way": "router",
        "src": node.id,
        "dest": raw.id,
        "id": "",
        "type": "resize",
        "data": {"width": 200},
    }
    assert raw.silence(0.1) == []


@pytest.mark.parametrize("name", ["reply", "parent"])
def test_a_reply_of_a_peer_is_what_a_request_returns(node: blocking.Node, raw: RawPeer, name: str) -> None:
    raw.messages = {"resize": {"attempts": 1, "period": 5000}}
    raw.join(node.info.router)
    asking = background(lambda: node.request_any("resize"))
    question = raw.asked("resize")
    raw.reply(node.info.router, question, {"width": 7}, **{"reply": None, name: question["id"]})
    assert asking.result() == {"width": 7}


def test_a_member_to_whom_we_are_strangers_is_told_who_we_are_and_asked_again(
    node: blocking.Node, raw: RawPeer
) -> None:
    raw.messages = {"resize": {"attempts": 5, "period": round(200 * time_factor())}}
    raw.join(node.info.router)
    asking = background(lambda: node.request(raw.id, "resize"))
    raw.reply(node.info.router, raw.asked("resize"), {"error": "who are you?", "code": "stranger"})
    introduction = raw.asked("_connect")
    assert introduction["data"] == object_of(node)
    raw.reply(node.info.router, introduction, raw.info)
    raw.reply(node.info.router, raw.asked("resize"), "hello")
    assert asking.result() == "hello"


def test_what_is_told_says_that_it_wants_no_reply(node: blocking.Node, member: RawPeer) -> None:
    node.tell(member.id, "note", "x")
    message = member.asked("note")
    assert is_uuid4(message.pop("id"))
    assert message == {
        "way": "router",
        "src": node.id,
        "dest": member.id,
        "type": "note",
        "data": "x",
        "silent": True,
    }


def test_what_we_broadcast_is_two_frames(node: blocking.Node, member: RawPeer) -> None:
    member.listen(node.info.pub)
    member.heard("_ka")
    node.broadcast("note", {"x": "ü"})
    type, text = member.heard("note")
    message = json.loads(text)
    assert is_uuid4(message.pop("id"))
    assert (type, message) == (b"note", {"src": node.id, "dest": "_all", "type": "note", "data": {"x": "ü"}})
