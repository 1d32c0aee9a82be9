"""A listener whose machine is gone, without a word."""

from __future__ import annotations

import contextlib
import time

from tests.cluster.clusters import Cluster
from tests.cluster.network import Network

PATIENCE_S = 1.0
SOON_S = 20.0
"""Less than the half minute after which a kernel is not waited for in any case."""


def test_a_value_that_is_not_acknowledged_is_the_next_listeners_as_soon_as_the_settings_say(
    net: Network, closing: contextlib.ExitStack
) -> None:
    here, there = net.hosts[:2]
    with Cluster(1, machines=[here]) as cluster:
        [node] = cluster.nodes
        node.start(unread_output_s=PATIENCE_S)
        lost, sender, heir = (closing.enter_context(node.client(machine)) for machine in (there, here, here))
        lost.ask(":hello", 0, {"ack": True})
        lost.call(":recv!", 1, 60_000, "topic")
        sender.wait_until("topic", receivers=1)
        net.isolate(there)
        began = time.monotonic()
        sender.call(":send!", 1, 60_000, "topic", "value")
        assert heir.ask(":recv!", 1, 60_000, "topic", within=40.0) == "value"
        assert sender.reply() == [":send!", 1, True]
        assert time.monotonic() - began < SOON_S
