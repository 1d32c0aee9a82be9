"""Messages and connections that are lost on the way, and what is left of peers that come and go by the thousand."""

from __future__ import annotations

import contextlib
import gc
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from skywalker.errors import NoReply
from skywalker.silk import blocking
from tests.helpers import eventually, time_factor
from tests.silk.conftest import Peers
from tests.silk.driving import keepalive
from tests.silk.raw_peer import Fields, RawPeer
from tests.silk.ways import LossyWay, Wiretap


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def elsewhere(port: int, path: Path) -> blocking.Node:
    """Return a node that listens at 127.0.0.2, and says that it is at 127.0.0.1."""
    return blocking.Node(f"tcp://127.0.0.2:{port}", f"ipc://{path}/pub", advertise="127.0.0.1", keepalive=keepalive())


def behind(
    loses: Callable[[Fields], bool], path: Path, closing: contextlib.ExitStack
) -> tuple[blocking.Node, LossyWay]:
    """Return a node whose direct messages come by a lossy way."""
    port = free_port()
    way = closing.enter_context(LossyWay(f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.2:{port}", loses))
    return closing.enter_context(elsewhere(port, path)), way


def noting(ran: list[Any], reply: Any = "done") -> Callable[[Any], Any]:
    """Return a handler that notes what it was asked."""

    def work(data: Any) -> Any:
        ran.append(data)
        return reply

    return work


def the_first(count: int, type: str, **fields: Any) -> Callable[[Fields], bool]:
    """Return what loses so many messages of a type."""
    seen: list[Fields] = []

    def loses(message: Fields) -> bool:
        if message["type"] == type and fields.items() <= message.items():
            seen.append(message)
            return len(seen) <= count
        return False

    return loses


@pytest.mark.parametrize("count", [1, 3])
def test_a_request_whose_reply_is_lost_is_sent_again_and_handled_once(
    count: int, node: blocking.Node, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    asker, way = behind(the_first(count, "_reply", data="done"), tmp_path, closing)
    ran: list[Any] = []
    node.handle("work", noting(ran), attempts=5, period=0.1 * time_factor())
    asker.join(node.info.router)
    assert asker.request(node.id, "work", 7) == "done"
    assert len(way.lost) == count
    assert ran == [7]
    # The next is another request, though it says the same.
    assert asker.request(node.id, "work", 7) == "done"
    assert ran == [7, 7]


def test_a_request_whose_replies_are_all_lost_fails_and_was_handled_once(
    node: blocking.Node, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    asker, way = behind(the_first(100, "_reply", data="done"), tmp_path, closing)
    ran: list[Any] = []
    node.handle("work", noting(ran), attempts=3, period=0.1 * time_factor())
    asker.join(node.info.router)
    with pytest.raises(NoReply, match="did not answer 'work', sent 3 times, within"):
        asker.request(node.id, "work", 7)
    assert ran == [7]
    eventually(lambda: len(way.lost) == 3)
    assert len({message["reply"] for message in way.lost}) == 1


def test_a_request_that_is_lost_itself_is_sent_again(
    node: blocking.Node, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    worker, way = behind(the_first(2, "work"), tmp_path, closing)
    ran: list[Any] = []
    worker.handle("work", noting(ran), attempts=5, period=0.1 * time_factor())
    worker.join(node.info.router)
    eventually(lambda: node.members)
    assert node.request_any("work", 7) == "done"
    assert ran == [7]
    assert len({message["id"] for message in way.lost}) == 1


@pytest.mark.parametrize("type", ["_join", "_connect", "_reply"])
def test_nodes_meet_though_the_first_words_between_them_are_lost(
    type: str, node: blocking.Node, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    lossy, way = behind(the_first(2, type), tmp_path, closing)
    third = closing.enter_context(blocking.Node(keepalive=keepalive()))
    third.join(node.info.router)
    if type == "_reply":
        lossy.join(node.info.router, timeout=10 * time_factor())
    else:
        node.join(lossy.info.router, timeout=10 * time_factor())
    ids = {each.id for each in (node, lossy, third)}
    eventually(lambda: all(each.members.keys() == ids - {each.id} for each in (node, lossy, third)), within=10)
    assert way.lost or type == "_connect"  # which nobody may have had to say to it


def test_connections_that_break_over_and_over_make_nobody_fail(
    node: blocking.Node, tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    """ZeroMQ connects again by itself; what was on its way is lost, and requests are sent again."""
    port = free_port()
    way = closing.enter_context(Wiretap(f"tcp://127.0.0.2:{port}", ("127.0.0.1", port)))
    worker = closing.enter_context(elsewhere(port, tmp_path))
    ran: list[Any] = []
    worker.handle("work", noting(ran), attempts=20, period=0.1 * time_factor())
    worker.join(node.info.router)
    eventually(lambda: node.members)
    events = node.events()
    for number in range(20):
        if number % 2:
            way.cut()
        assert node.request(worker.id, "work", number) == "done"
    assert ran == [*range(20)]
    failed = []
    with contextlib.suppress(TimeoutError):
        while (event := events.next(0.01)) is not None:
            failed.append(type(event).__name__)
    assert "Failed" not in failed


def test_a_thousand_peers_that_came_and_went_leave_nothing_behind(node: blocking.Node, peers: Peers) -> None:
    process = psutil.Process()
    raw = peers()

    def come_and_go(count: int) -> None:
        for number in range(count):
            peer = {"id": f"peer-{number}", "name": "x" * 200, "keepalive": {"period": round(keepalive() * 1000)}}
            port = 20_000 + number % 1000
            peer["endpoints"] = {"router": f"tcp://127.0.0.3:{port}", "pub": f"tcp://127.0.0.4:{port}"}
            raw.send(node.info.router, "_join", src=peer["id"], data=peer)
        raw.answer_to(raw.send(node.info.router, "_members"), within=20)
        eventually(lambda: not node.members, within=20)

    come_and_go(100)
    eventually(lambda: not node.members)
    gc.collect()
    tracemalloc.start()
    try:
        held, _ = tracemalloc.get_traced_memory()
        descriptors = process.num_fds()
        come_and_go(1000)
        gc.collect()
        eventually(lambda: process.num_fds() <= descriptors + 5)
        more = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    # Who has left is remembered for a minute, by id.
    assert more < 1000 * 500
    assert node.members == {}


def test_a_thousand_strangers_leave_nothing_behind(node: blocking.Node, raw: RawPeer, peers: Peers) -> None:
    node.handle("work", print)
    descriptors = psutil.Process().num_fds()
    for number in range(1000):
        raw.send(node.info.router, "work", node.id, src=f"stranger-{number}", id="i")
        assert raw.answer_to("i")["data"]["code"] == "stranger"
    assert psutil.Process().num_fds() <= descriptors + 10
    assert node.members == {}
    assert node.dropped == 1000
