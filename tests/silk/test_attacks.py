"""Who makes up members, speaks in others' names, or has a node knock at the doors of others; all of it without keys.

Of the two nodes of ours that know each other, each is to stay a member of the other, and be answered.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from skywalker import silk
from skywalker.silk import claims, visits
from skywalker.silk.node import JOIN_S
from tests.helpers import time_factor
from tests.silk import ground
from tests.silk.conftest import Peers
from tests.silk.driving import keepalive
from tests.silk.ground import eventually, new_node, pause
from tests.silk.raw_peer import RawPeer

MIB = 1024 * 1024


@pytest.fixture
def friend(node: Any, period: float) -> Iterator[Any]:
    """Another node of ours, which knows the first."""
    node.handle("echo", lambda data: data, attempts=20)
    with new_node(name="friend", keepalive=period) as friend:
        friend.handle("echo", lambda data: data)
        friend.join(node.info.router)
        eventually(lambda: "echo" in node.members[friend.id].messages)
        yield friend


def still_there(node: Any, friend: Any, events: Any) -> None:
    """Fail if the friend has ever been missing, or is not the one it was."""
    assert node.members[friend.id] == friend.info
    assert node.request(friend.id, "echo", 1) == 1
    assert friend.request(node.id, "echo", 2) == 2
    while True:
        try:
            event = events.next(0.0)
        except TimeoutError:
            return
        assert event.node.id != friend.id or not isinstance(event, silk.Left | silk.Failed | silk.Changed)


def insider(node: Any, peers: Peers) -> RawPeer:
    """Return a member that is up to no good, and to whom the node listens."""
    liar = peers(name="liar")
    heard: list[object] = []
    node.handle("gossip", heard.append)
    liar.join(node.info.router)

    def gossip() -> list[object]:
        liar.publish("gossip")
        return heard

    eventually(gossip)
    return liar


# Floods.


@pytest.mark.alone  # how long an answer takes is measured, and a flood takes a core
@pytest.mark.parametrize("here", [True], indirect=True, ids=["real"])
@pytest.mark.parametrize("period", [1.0])
@pytest.mark.parametrize(
    ("count", "length"), [pytest.param(2_000, 0, id="2,000"), pytest.param(30, 900_000, id="huge ones")]
)
def test_who_makes_up_members_without_end_costs_little_and_drives_nobody_out(
    node: Any, friend: Any, count: int, length: int
) -> None:
    process = psutil.Process()
    memory, files = process.memory_info().rss, process.num_fds()
    flood = subprocess.Popen([sys.executable, "-m", "tests.silk.flooder", node.info.router, str(count), str(length)])
    slowest, made_up = 0.0, 0
    try:
        while flood.poll() is None:
            began = time.monotonic()
            assert friend.request(node.id, "echo", 1) == 1
            slowest = max(slowest, time.monotonic() - began)
            assert friend.id in node.members
            assert node.id in friend.members
            made_up = max(made_up, len(node.members))
            pause(0.05)
    finally:
        flood.kill()
        flood.wait()
    assert slowest < 2.5 * time_factor(), "sent again once, at most"
    assert made_up <= claims.MAX_UNPROVEN + 2
    assert process.memory_info().rss - memory < 160 * MIB
    assert process.num_fds() - files < 4 * claims.MAX_UNPROVEN
    # And then others are let in, though all of those said that an hour of silence is nothing.
    with new_node(name="newcomer", keepalive=keepalive()) as newcomer:

        def joined() -> bool:
            newcomer.join(node.info.router, JOIN_S)
            return newcomer.id in node.members and friend.id in newcomer.members

        assert eventually(joined, within=30)


@pytest.mark.parametrize("here", [True], indirect=True, ids=["real"])
def test_however_many_come_and_die_few_descriptors_are_kept_for_them(node: Any) -> None:
    process = psutil.Process()
    alone = process.num_fds()
    events, failed = node.events(), 0
    for _ in range(2):
        with contextlib.ExitStack() as peers:
            for _ in range(30):
                peer = peers.enter_context(RawPeer(keepalive_ms=round(1000 * keepalive())))
                peer.join(node.info.router)
                peer.send(node.info.router, "_connect", dest=node.id, data=peer.info)  # it has lived for a while
    while failed < 60:
        failed += isinstance(events.next(10 * time_factor()), silk.Failed)
    assert not node.members
    # Those of members are closed soon, and some others are just being closed.
    eventually(lambda: process.num_fds() - alone <= visits.MAX_WAITING + 20)


@pytest.mark.parametrize("type", ["_leave", "_fail", "_ka", "_connect", "_members", "_reply", "_join", "echo"])
def test_messages_in_a_members_name_at_full_speed_do_not_drive_it_out(
    node: Any, friend: Any, raw: RawPeer, type: str
) -> None:
    events = node.events()
    data = {"id": friend.id} if type == "_fail" else None
    for number in range(1_000):
        dest = "_all" if type in ("_leave", "_fail", "_ka") else node.id
        raw.send(node.info.router, type, dest, src=friend.id, id=str(number), data=data, reply="1")
        if number % 50 == 0:
            pause(0.001)  # or its own ZeroMQ has no room
    raw.answer_to(raw.send(node.info.router, "_members"), within=20)
    still_there(node, friend, events)


@pytest.mark.parametrize("type", ["_leave", "_fail"])
def test_a_member_that_says_all_the_time_that_another_is_gone_is_not_believed(
    here: ground.Ground, node: Any, friend: Any, peers: Peers, type: str
) -> None:
    liar = insider(node, peers)
    events = node.events()
    end = here.now() + 6 * keepalive()
    while here.now() < end:
        if type == "_leave":
            liar.publish("_leave", src=friend.id)
        else:
            liar.publish("_fail", data={"id": friend.id})
        pause(0.005)
    still_there(node, friend, events)


# Other people's places.


def in_the_name_of(friend: Any, **changed: Any) -> dict[str, Any]:
    """Return a node object that differs from the friend's."""
    return friend.info.as_map() | changed


ELSEWHERE = {"router": "tcp://127.0.0.1:1", "pub": "tcp://127.0.0.1:2"}


@pytest.mark.parametrize("type", ["_join", "_connect", "_members", "_reply"])
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"endpoints": ELSEWHERE}, id="its id elsewhere"),
        pytest.param({"id": "thief"}, id="its endpoints"),
        pytest.param({"messages": {}, "name": "thief", "keepalive": {"period": 10}}, id="other words"),
    ],
)
def test_nobody_takes_the_place_of_a_member_that_answers(
    node: Any, friend: Any, raw: RawPeer, type: str, changed: dict[str, Any]
) -> None:
    events = node.events()
    told = in_the_name_of(friend, **changed)
    data = {"cluster": {}, "me": told} if type == "_reply" else told
    for _ in range(20):
        raw.send(node.info.router, type, node.id, src=told["id"], data=data, reply="guessed")
        pause(0.1 * keepalive())
    still_there(node, friend, events)
    assert "thief" not in node.members


@pytest.mark.parametrize("type", ["_join", "_connect"])
def test_nobody_takes_the_place_of_the_node_itself(node: Any, friend: Any, raw: RawPeer, type: str) -> None:
    events = node.events()
    for changed in ({"endpoints": ELSEWHERE}, {"id": "thief"}):
        told = node.info.as_map() | changed
        raw.send(node.info.router, type, node.id, src=told["id"], data=told)
    eventually(lambda: node.dropped == 2)
    assert set(node.members) == {friend.id}
    still_there(node, friend, events)
