"""What pub/sub's clients publish with a form goes over links as it is; whoever takes none has it uncompressed."""

from __future__ import annotations

import random

import pytest

from skywalker.ring import token_of
from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.worlds import LIMITS, Wire

PAYLOAD = b"what is said " * 100
SQUEEZED = pubsub.deflate(PAYLOAD)


@pytest.mark.parametrize("nodes", [[0, 0], [0, 1]], ids=["siblings", "nodes"])
@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize(
    ("form", "payload"), [(b"\x07\x01", SQUEEZED), (b"\x07\x00", PAYLOAD)], ids=["compressed", "plain"]
)
def test_a_form_goes_over_links(nodes: list[int], owner: int, form: bytes, payload: bytes) -> None:
    layout = Layout(nodes, random.Random(1))
    cluster = Cluster(layout, LIMITS, 1)
    ring = layout.ring()
    names = [b"topic%d" % number for number in range(100)]
    topic = next(name for name in names if ring.owner(token_of(pubsub.bus_topic(name))) == layout.places[owner])
    clients = {}
    for at, said in ((0, pubsub.subscribe(topic, typed=True)), (0, pubsub.subscribe(topic)), (1, b"")):
        fd = 50 + len(clients)
        clients[fd] = cluster.worlds[at].wires[fd] = Wire(fd)
        cluster.workers[at].connect(fd, pubsub=True)
        clients[fd].coming += said
        cluster.settle()
    for wire_ in clients.values():
        wire_.taken.clear()
    clients[52].coming += pubsub.publish_typed(topic, form, payload)
    cluster.settle()
    assert clients[50].taken == pubsub.publish_typed(topic, form, payload)
    assert clients[51].taken == pubsub.publish(topic, PAYLOAD)
