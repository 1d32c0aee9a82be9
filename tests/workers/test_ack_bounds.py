"""Values that wait for their :ack are bounded as calls are, and room that an :ack makes is given again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.nodes import Node, running
from tests.workers.wire_client import Clients, WireClient, call, clients_of, refusal

KIB = 1024
VALUE = b"v" * 60_000
WAITING_BYTES = 1024 * KIB
ROOM = WAITING_BYTES // len(VALUE) + 1
"""Values that a worker holds before it has reached its limit."""


def acknowledging(connect: Clients, worker: int | None = None) -> WireClient:
    """Return a connection that says :ack for each value."""
    client = connect(worker=worker)
    client.ask(":hello", "h", {"ack": True})
    return client


def acks(ids: list[int]) -> bytes:
    return b"".join(call(":ack", id) for id in ids)


def answers_before_ping(client: WireClient) -> list[list[object]]:
    """Return what is answered to the calls made so far."""
    client.call(":ping", "all")
    found = []
    while (answer := client.reply())[0] != ":ping":
        found.append(answer)
    return found


@pytest.fixture(scope="module", params=[1, 2], ids=lambda count: f"{count}-workers")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node with little memory for calls that wait, and no other limit near."""
    with running(workers=request.param, max_calls=1000, waiting_bytes=WAITING_BYTES) as node:
        yield node


class TestByNumber:
    @pytest.fixture
    def connect(self) -> Iterator[Clients]:
        with running(workers=1, max_calls=10) as node, clients_of(node.address) as clients:
            yield clients

    def test_no_more_values_are_given_than_calls_may_wait_until_some_are_acknowledged(self, connect: Clients) -> None:
        senders, receiver = [connect() for _ in range(3)], acknowledging(connect)
        for sender in senders:
            sender.write(b"".join(call(":send!", n, 60_000, "topic", n) for n in range(10)))
            assert answers_before_ping(sender) == []
        receiver.write(b"".join(call(":recv!", n, 60_000, "topic") for n in range(10)))
        first = answers_before_ping(receiver)
        assert [id for _, id, _ in first] == list(range(10))
        receiver.write(b"".join(call(":recv!", n, 60_000, "topic") for n in range(10, 15)))
        refused = answers_before_ping(receiver)
        assert {refusal(answer).code for answer in refused} <= {"busy"}
        receiver.write(acks(list(range(10))))
        assert senders[0].replies(10) == [[":send!", n, True] for n in range(10)]
        # Those that were not refused are given their values now, without being asked for again.
        assert len(receiver.replies(5 - len(refused))) == 5 - len(refused)
        assert isinstance(receiver.ask(":recv!", "one more", 5000, "topic"), int)

    def test_receives_that_find_a_sender_while_there_is_no_room_are_bounded_too(self, connect: Clients) -> None:
        senders, receiver = [connect() for _ in range(2)], acknowledging(connect)
        for sender in senders:
            sender.write(b"".join(call(":send!", n, 60_000, "topic", n) for n in range(10)))
            assert answers_before_ping(sender) == []
        receiver.write(b"".join(call(":recv!", n, 60_000, "topic") for n in range(500)))
        answers = answers_before_ping(receiver)
        values = [id for _, id, result in answers if isinstance(result, int)]
        refused = [refusal(answer).code for answer in answers if not isinstance(answer[2], int)]
        assert len(values) == 10
        assert refused == ["busy"] * len(refused)
        assert len(refused) >= 480


class TestByMemory:
    def test_values_without_an_ack_take_no_more_memory_than_calls_may_wherever_they_are(
        self, node: Node, connect: Clients, topic: str
    ) -> None:
        count = 4 * ROOM
        last = node.workers - 1
        for here, there, owner in dict.fromkeys([(0, 0, 0), (0, last, last), (last, 0, last), (0, last, 0)]):
            sender, receiver, watcher = connect(worker=here), acknowledging(connect, there), connect(worker=owner)
            names = [node.topic_of(owner, f"{topic}{here}{there}{n}") for n in range(count)]
            receiver.write(b"".join(call(":recv!", n, 60_000, name) for n, name in enumerate(names)))
            watcher.wait_until(names[-1], receivers=1)
            sender.write(b"".join(call(":send!", n, 60_000, name, VALUE) for n, name in enumerate(names)))
            given = []
            while receiver.has_input(0.2):
                given.append(receiver.reply()[1])
            assert 1 < len(given) <= ROOM
            receiver.write(acks(given))
            told = {}
            while sender.has_input(0.2):
                _, id, result = answer = sender.reply()
                told[id] = result is True or refusal(answer).code
            assert [id for id, result in told.items() if result is True] == given
            assert set(told.values()) == {True, "busy"}
            # Who was refused may try again, now that there is room.
            late = next(id for id, result in told.items() if result == "busy")
            sender.call(":send!", "late", 5000, names[late], VALUE)
            assert receiver.reply() == [":recv!", late, VALUE]
            receiver.call(":ack", late)
            assert sender.reply() == [":send!", "late", True]
            for client in (sender, receiver, watcher):
                client.close()

    def test_a_listener_that_found_no_memory_is_reached_when_others_have_made_some(
        self, node: Node, connect: Clients, topic: str
    ) -> None:
        names = [node.topic_of(0, f"{topic}{n}") for n in range(ROOM)]
        name = node.topic_of(0, f"{topic}-last")
        greedy, modest = acknowledging(connect, 0), acknowledging(connect, 0)
        sender = connect(worker=0)
        greedy.write(b"".join(call(":recv!", n, 60_000, each) for n, each in enumerate(names)))
        modest.call(":recv!", 1, 60_000, name)
        sender.wait_until(names[-1], receivers=1)
        sender.wait_until(name, receivers=1)
        sender.write(b"".join(call(":send!", n, 60_000, each, VALUE) for n, each in enumerate(names)))
        assert len(greedy.replies(ROOM)) == ROOM
        sender.call(":send!", "no room", 60_000, name, "value")
        assert sender.refusal().code == "busy"
        greedy.write(acks(list(range(ROOM))))
        assert len(sender.replies(ROOM)) == ROOM
        sender.call(":send!", "room", 60_000, name, "value")
        assert modest.reply() == [":recv!", 1, "value"]
        modest.call(":ack", 1)
        assert sender.reply() == [":send!", "room", True]
