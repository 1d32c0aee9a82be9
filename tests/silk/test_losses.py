"""Messages and connections that are lost on the way, and what is left of peers that come and go by the thousand."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import zmq

from skywalker.errors import NoReply
from tests.silk.conftest import Peers
from tests.silk.driving import keepalive
from tests.silk.ground import Simulated, eventually, new_node, pause
from tests.silk.raw_peer import Fields, RawPeer
from tests.silk.world import Node
from tests.simulation.zeromq import LOST

really = pytest.mark.parametrize("here", [True], indirect=True, ids=["real"])


def noting(ran: list[Any], reply: Any = "done") -> Callable[[Any], Any]:
    """Return a handler that notes what it was asked."""

    def work(data: Any) -> Any:
        ran.append(data)
        return reply

    return work


def lose(here: Simulated, count: int, **fields: Any) -> list[Fields]:
    """Lose the first so many direct messages that have these fields; return them, as they come."""
    lost: list[Fields] = []

    def fate(kind: int, frames: list[bytes]) -> str:
        message = json.loads(frames[-1])
        if kind == zmq.DEALER and len(lost) < count and fields.items() <= message.items():
            lost.append(message)
            return LOST
        return ""

    here.world.zeromq.fate = fate
    return lost


@pytest.fixture
def other(here: Simulated, node: Node) -> Node:
    """Another member."""
    other: Node = new_node(keepalive=keepalive())
    other.join(node.info.router)
    return other


@pytest.mark.parametrize("count", [1, 3])
def test_a_request_whose_reply_is_lost_is_sent_again_and_handled_once(
    count: int, here: Simulated, node: Node, other: Node
) -> None:
    ran: list[Any] = []
    node.handle("work", noting(ran), attempts=5, period=0.1)
    pause(0.01)
    lost = lose(here, count, type="_reply", data="done")
    assert other.request(node.id, "work", 7) == "done"
    assert len(lost) == count
    assert ran == [7]
    # The next is another request, though it says the same.
    assert other.request(node.id, "work", 7) == "done"
    assert ran == [7, 7]


def test_a_request_whose_replies_are_all_lost_fails_and_was_handled_once(
    here: Simulated, node: Node, other: Node
) -> None:
    ran: list[Any] = []
    node.handle("work", noting(ran), attempts=3, period=0.1)
    pause(0.01)
    lost = lose(here, 100, type="_reply", data="done")
    with pytest.raises(NoReply, match="did not answer 'work', sent 3 times, within"):
        other.request(node.id, "work", 7)
    assert ran == [7]
    assert len(lost) == 3
    assert len({message["reply"] for message in lost}) == 1


def test_a_request_that_is_lost_itself_is_sent_again(here: Simulated, node: Node, other: Node) -> None:
    ran: list[Any] = []
    other.handle("work", noting(ran), attempts=5, period=0.1)
    pause(0.01)
    lost = lose(here, 2, type="work")
    assert node.request_any("work", 7) == "done"
    assert ran == [7]
    assert len({message["id"] for message in lost}) == 1


@pytest.mark.parametrize("type", ["_join", "_connect", "_reply"])
def test_nodes_meet_though_the_first_words_between_them_are_lost(type: str, here: Simulated, node: Node) -> None:
    late, third = new_node(keepalive=keepalive()), new_node(keepalive=keepalive())
    third.join(node.info.router)
    lost = lose(here, 2, type=type)
    late.join(node.info.router)
    ids = {each.id for each in (node, late, third)}
    eventually(lambda: all(each.members.keys() == ids - {each.id} for each in (node, late, third)), within=10)
    assert len(lost) == 2


@really
def test_hundreds_of_peers_that_came_and_went_leave_nothing_behind(node: Any, peers: Peers) -> None:
    process = psutil.Process()
    raw = peers()

    def come_and_go(count: int) -> None:
        for number in range(count):
            peer = {"id": f"peer-{number}", "name": "x" * 200, "keepalive": {"period": round(keepalive() * 1000)}}
            port = 20_000 + number % 300
            peer["endpoints"] = {"router": f"tcp://127.0.0.3:{port}", "pub": f"tcp://127.0.0.4:{port}"}
            raw.send(node.info.router, "_join", src=peer["id"], data=peer)
        raw.answer_to(raw.send(node.info.router, "_members"), within=20)
        eventually(lambda: not node.members, within=20)

    come_and_go(30)
    eventually(lambda: not node.members)
    gc.collect()
    tracemalloc.start()
    try:
        held, _ = tracemalloc.get_traced_memory()
        descriptors = process.num_fds()
        come_and_go(60)
        gc.collect()
        eventually(lambda: process.num_fds() <= descriptors + 5)
        more = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    # Who has left is remembered for a minute, by id.
    assert more < 60 * 2000
    assert node.members == {}


@really
def test_hundreds_of_strangers_leave_nothing_behind(node: Any, raw: RawPeer, peers: Peers) -> None:
    node.handle("work", print)
    descriptors = psutil.Process().num_fds()
    for number in range(150):
        raw.send(node.info.router, "work", node.id, src=f"stranger-{number}", id="i")
        assert raw.answer_to("i")["data"]["code"] == "stranger"
    assert psutil.Process().num_fds() <= descriptors + 10
    assert node.members == {}
    assert node.dropped == 150
