"""A node that hangs for a while: it takes what it is sent, and answers nothing until it goes on."""

from __future__ import annotations

import contextlib
import time
from itertools import islice

import pytest

import skywalker
from skywalker.errors import TimedOut
from tests.cluster.clusters import Cluster
from tests.cluster.meeting import assert_met, begin, meet
from tests.cluster.test_partitions import FORGET_S
from tests.helpers import eventually


def test_nobody_waits_for_a_node_that_hangs_once_the_others_have_given_it_up(closing: contextlib.ExitStack) -> None:
    with Cluster(3) as cluster:
        cluster.start()
        a, b, hung = (closing.enter_context(node.client()) for node in cluster.nodes)
        of_hung = [*islice(cluster.topics_of(cluster.nodes[2], "hung"), 20)]
        of_first = [*islice(cluster.topics_of(cluster.nodes[0], "first"), 20)]
        begin(a, ":send!", of_hung)
        begin(hung, ":recv!", of_first)
        for topic in of_first:
            a.wait_until(topic, receivers=1)
        cluster.nodes[2].freeze()
        cluster.settle(within=6)
        begin(b, ":recv!", of_hung)
        assert_met(a, b, of_hung)
        for topic in of_first:
            a.wait_until(topic, FORGET_S, receivers=0)
        meet(a, b, of_first)
        cluster.nodes[2].thaw()
        cluster.settle(within=3)
        begin(b, ":send!", of_first)
        assert_met(b, hung, of_first)


@pytest.mark.parametrize("owner", [0, 1], ids=["its own topics", "another's topics"])
def test_a_value_for_a_call_that_was_given_up_goes_to_the_next_who_asks(owner: int) -> None:
    with Cluster(2, workers=1) as cluster:
        cluster.start()
        home, _ = cluster.nodes
        topic = cluster.topic_of(cluster.nodes[owner])
        with skywalker.connect(home.address, ack=True, direct=False) as client:
            assert client.ping() >= 0
            home.freeze()
            given_up = client.begin("recv", topic, timeout=0.2)
            time.sleep(0.1)  # so that it is the first on the wire
            sent = client.begin("send", topic, "value", timeout=20)
            with pytest.raises(TimedOut):
                given_up.result()
            home.thaw()
            # The node hands the value to the call that it reads first, which nobody expects an answer to.
            assert client.recv(topic, timeout=5) == "value"
            assert sent.result() is True
            eventually(cluster.is_settled)
