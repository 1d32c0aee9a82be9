"""Calls whose topic another node owns from now on, where the rules of simulated runs say nothing."""

from __future__ import annotations

import signal

from tests.helpers import CLOCK, eventually
from tests.workers.operated import Operated
from tests.workers.pubsub_client import Message, PubSubClient, publish, subscribe, unsubscribe
from tests.workers.staged import MEET_S, bus_of, simulated, simulated_nodes
from tests.workers.wire_client import TIMED_OUT, WireClient

LONG_MS = 60_000


def test_senders_are_served_in_the_order_they_came_whatever_node_they_came_through_and_whoever_joins() -> None:
    with simulated_nodes(2) as nodes:
        host = nodes[0].stage.host()
        senders = [WireClient.open(node.address) for node in nodes]
        topics = [f"topic-{number}" for number in range(12)]
        for topic in topics:
            for number in range(6):
                senders[number % 2].call(":send!", number, LONG_MS, topic, number)
                senders[0].wait_until(topic, senders=number + 1)
                CLOCK.sleep(0.02)  # nodes know each other's clocks by how long something is on its way
        join = "{}:{}".format(*nodes[0].address)
        with simulated(2, harmed=True, host=host, join=join) as third:
            eventually(lambda: all(node.ring() == [3, 3] for node in (*nodes, third)), MEET_S)
            bus = bus_of([*nodes, third])
            assert any(bus.owner(topic) >= 4 for topic in topics), "some have moved"
            with WireClient.open(third.address) as receiver:
                for topic in topics:
                    senders[0].wait_until(topic, senders=6)
                    assert [receiver.ask(":recv!", n, 5_000, topic) for n in range(6)] == [*range(6)]
            for sender in senders:
                assert len(sender.replies(36)) == 36
                sender.close()


def test_a_send_that_waits_at_a_node_which_goes_as_planned_is_not_in_doubt_and_where_it_is_lost_it_is() -> None:
    for end in (signal.SIGTERM, signal.SIGKILL):
        with simulated_nodes(2, drain_timeout_s=5.0) as nodes, WireClient.open(nodes[0].address) as sender:
            leaver = Operated(nodes[1])
            topic = bus_of(nodes).topic(2)
            sender.greet()
            sender.call(":send!", 1, 3_000, topic, "value")
            sender.wait_until(topic, senders=1)
            leaver.signal(end)
            if end == signal.SIGTERM:
                assert sender.reply() == [":send!", 1, TIMED_OUT]
            else:
                assert sender.refusal().code == "unknown-outcome", "a client of that node may have it"


def test_nor_is_one_whose_owner_drains_alone_and_waits_for_a_client_to_go() -> None:
    with (
        simulated_nodes(2, workers=1) as nodes,
        WireClient.open(nodes[0].address) as sender,
        WireClient.open(nodes[1].address) as stays,
    ):
        topic = bus_of(nodes).topic(1)
        sender.greet()
        stays.greet()
        sender.call(":send!", 1, 3_000, topic, "value")
        sender.wait_until(topic, senders=1)
        [owner] = nodes[1].pids()
        nodes[1].kill(owner, signal.SIGTERM)
        assert sender.reply() == [":send!", 1, TIMED_OUT]
        assert owner not in nodes[1].pids()


def test_a_will_reaches_those_who_listen_although_its_owner_has_just_died() -> None:
    # By one worker: others may learn of the next owner later, and then nobody listens there at that moment.
    with simulated_nodes(2, workers=1) as nodes:
        topic = bus_of(nodes).topic(1)
        leaver, heirs = WireClient.open(nodes[0].address), [WireClient.open(nodes[0].address) for _ in range(2)]
        for number, heir in enumerate(heirs, 1):
            heir.call(":recv!", 1, LONG_MS, topic)
            leaver.wait_until(topic, receivers=number)
        leaver.call(":will!", 1, LONG_MS, topic, "gone")
        assert leaver.ask(":ping", 2) is True
        nodes[1].signal(signal.SIGKILL)
        leaver.close()  # of which nobody can tell the owner any more
        assert [heir.reply() for heir in heirs] == [[":recv!", 1, "gone"]] * 2
        for heir in heirs:
            heir.close()


def test_what_is_published_behind_a_subscribe_comes_back_whatever_moves_in_between() -> None:
    with simulated_nodes(2, drain_timeout_s=5.0) as nodes, PubSubClient.open(nodes[0].pubsub) as client:
        topics = map(str.encode, bus_of(nodes).topics(10_000))
        used = []
        nodes[1].signal(signal.SIGTERM)
        for topic in topics:
            used.append(topic)
            client.write(subscribe(topic) + publish(topic, b"in") + unsubscribe(topic) + publish(topic, b"out"))
            CLOCK.sleep(0.0001)
            if nodes[0].ring() == [1, 1] and len(used) > 100:
                break
        client.acks(4 * len(used))
        assert client.messages(len(used)) == [Message(topic, b"in") for topic in used]
        assert not client.has_input(0.01)
