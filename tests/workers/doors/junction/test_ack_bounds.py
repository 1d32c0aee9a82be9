"""Values that wait for their :ack are bounded as calls are, and room that an :ack makes is given again."""

from __future__ import annotations

from skywalker.limits import Limits
from tests.workers.staged import Node
from tests.workers.wire_client import Clients, WireClient, call

VALUE = b"v" * 60_000
ROOM = Limits().output_bytes // len(VALUE) + 2
"""Values that a connection is given before it has reached its limit, one for the turn's begin and one for its end."""

SENDS = 12


def acknowledging(connect: Clients, worker: int | None = None) -> WireClient:
    """Return a connection that says :ack for each value."""
    client = connect(worker=worker)
    client.ask(":hello", "h", {"ack": True})
    return client


def acks(ids: list[int]) -> bytes:
    return b"".join(call(":ack", id) for id in ids)


class TestByMemory:
    def test_no_more_values_are_given_than_may_be_unread_until_some_are_acknowledged(
        self, node: Node, connect: Clients, topic: str
    ) -> None:
        last = node.workers - 1
        for here, there, owner in dict.fromkeys([(0, 0, 0), (0, last, last), (last, 0, last), (0, last, 0)]):
            sender, receiver, watcher = connect(worker=here), acknowledging(connect, there), connect(worker=owner)
            names = [node.topic_of(owner, f"{topic}{here}{there}{n}") for n in range(SENDS)]
            receiver.write(b"".join(call(":recv!", n, 60_000, name) for n, name in enumerate(names)))
            watcher.wait_until(names[-1], receivers=1)
            sender.write(b"".join(call(":send!", n, 60_000, name, VALUE) for n, name in enumerate(names)))
            got: set[object] = set()
            while len(got) < SENDS:
                given = [receiver.reply()[1]]
                while receiver.has_input(0.2):
                    given.append(receiver.reply()[1])
                assert len(given) <= ROOM
                got.update(given)
                receiver.write(acks(given))
            assert {id for _, id, result in sender.replies(SENDS) if result is True} == got
            for client in (sender, receiver, watcher):
                client.close()

    def test_who_acknowledges_nothing_keeps_others_from_nothing(self, node: Node, connect: Clients, topic: str) -> None:
        greedy, modest, sender = acknowledging(connect, 0), acknowledging(connect, 0), connect(worker=0)
        names = [node.topic_of(0, f"{topic}{n}") for n in range(SENDS)]
        name = node.topic_of(0, f"{topic}-last")
        greedy.write(b"".join(call(":recv!", n, 60_000, each) for n, each in enumerate(names)))
        modest.call(":recv!", 1, 60_000, name)
        sender.wait_until(names[-1], receivers=1)
        sender.wait_until(name, receivers=1)
        sender.write(b"".join(call(":send!", n, 60_000, each, VALUE) for n, each in enumerate(names)))
        assert greedy.reply()[2] == VALUE
        sender.call(":send!", "modest", 60_000, name, "value")
        assert modest.reply() == [":recv!", 1, "value"]
        modest.call(":ack", 1)
        assert sender.reply() == [":send!", "modest", True]
