"""More listeners than one packet of a link has room for: one value for all of them kills no worker."""

from __future__ import annotations

from tests.simulation.plan import Conditions
from tests.workers.staged import simulated
from tests.workers.wire_client import call, clients_of

CROWD = 2
CALLS_EACH = 9_900
"""Within the limit of one connection; the numbers of all the calls together fill more than a packet."""


def test_a_value_reaches_twenty_thousand_receivers_of_a_sibling() -> None:
    with simulated(workers=2) as node, clients_of(node.address) as connect:
        # To whom a write is cut short no more is given before it has read: here none is.
        node.stage.net.conditions = Conditions(pieces=0.0)
        topic = node.topic_of(1, "crowd")
        sender, crowd = connect(worker=1), [connect(worker=0) for _ in range(CROWD)]
        for client in crowd:
            client.write(call(":recv!", 1, 60_000, topic) * CALLS_EACH)
        sender.wait_until(topic, within=10.0, receivers=CROWD * CALLS_EACH)
        sender.call(":send!", 1, 60_000, topic, "news")
        # A worker that died of it would give the sender's call to its successor, where nobody listens.
        assert sender.reply() == [":send!", 1, True]
        for client in crowd:
            assert client.replies(CALLS_EACH, within=10.0) == [[":recv!", 1, "news"]] * CALLS_EACH
        sender.wait_until(topic, receivers=0, senders=0)
