"""unread_output_s is how long a peer may read nothing of its replies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK, eventually
from tests.workers.nodes.test_slow_peers import MIB, SMALL_BUFFER, sends, write_all
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import Clients, ConnectionEnded, call


@pytest.fixture(params=[1, 2], ids=str)
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node with little patience."""
    with simulated(request.param, unread_output_s=0.6) as node:
        yield node


def test_a_peer_that_reads_nothing_is_closed_and_the_log_says_why(node: Node, connect: Clients, topic: str) -> None:
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


def test_a_peer_that_reads_steadily_is_kept_however_slow_it_is(connect: Clients, topic: str) -> None:
    slow, sender = connect(receive_buffer=SMALL_BUFFER), connect()
    count = 60
    slow.write(b"".join(call(":take!", n, 60_000, topic, "pool") for n in range(count)))
    sender.wait_until(topic, takers={"pool": count})
    sender.write(sends(topic, 60_000, range(count)))
    eventually(sender.has_input)
    began = CLOCK.monotonic()
    # Far too slow for the kernel to call the node's end writable within 0.6 s.
    for _ in range(18):
        slow.reply()
        CLOCK.sleep(0.1)  # this is what the peer is: slow
    assert CLOCK.monotonic() - began > 1.8
    assert len(slow.replies(count - 18)) == count - 18
    assert len(sender.replies(count)) == count


def test_a_client_that_only_calls_is_closed_too(connect: Clients) -> None:
    client = connect(receive_buffer=SMALL_BUFFER)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        write_all(client, call(":hello", 1, {}) * 500, 64 * MIB)
