"""At a limit the caller is told `busy`, or cut off: everybody else goes on, and room that is freed is given again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import (
    TIMED_OUT,
    Clients,
    ConnectionEnded,
    Refusal,
    WireClient,
    call,
    clients_of,
    refusal,
)

KIB = 1024


@pytest.fixture
def node() -> Iterator[Node]:
    """A node with little room for everything."""
    with simulated(
        workers=2,
        max_connections=60,
        max_calls=50,
        waiting_bytes=1024 * KIB,
        mesh_bytes=256 * KIB,
    ) as node:
        yield node


def is_free(node: Node) -> bool:
    """Tell whether every worker takes connections again."""
    for _ in range(4 * node.workers):
        with WireClient.open(node.address) as client:
            if client.ask(":ping", 1) is not True:
                return False
    return True


@pytest.mark.parametrize("owner", ["first", "last"])
def test_a_worker_full_of_waiting_values_says_so_and_recovers(
    node: Node, connect: Clients, topic: str, owner: str
) -> None:
    name, value = node.topic_of(node.workers - 1 if owner == "last" else 0, topic), "x" * 60_000
    watcher = connect()
    # Each connection has room for its own calls; together they have not.
    senders = [connect(worker=n % node.workers) for n in range(4)]
    for sender in senders:
        for id in range(8):
            sender.call(":send!", id, 60_000, name, value)
    refused: list[Refusal] = []
    eventually(lambda: len(taken_in(senders, refused)) + watcher.info(name)["senders"] == 32)
    assert 10 < len(refused) < 31
    assert {each.code for each in refused} == {"busy"}
    assert {each.details["limit"] for each in refused} == {"waiting_bytes"}
    for id in range(32 - len(refused)):
        assert watcher.ask(":recv!", id, 5000, name) == value
    assert watcher.ask(":recv!", "no more", 0, name) == TIMED_OUT
    senders[0].call(":send!", "again", 60_000, name, value)
    watcher.wait_until(name, senders=1)
    for sender in senders:
        sender.close()
    watcher.wait_until(name, senders=0)


def taken_in(clients: list[WireClient], refused: list[Refusal]) -> list[Refusal]:
    """Add the refusals that have come to `refused`, and return it."""
    for client in clients:
        while client.has_input():
            refused.append(client.refusal())
    return refused


def test_calls_for_a_worker_that_hangs_are_refused_when_too_many_are_queued_and_none_is_lost(topic: str) -> None:
    with simulated(workers=2, mesh_bytes=256 * KIB) as node, clients_of(node.address) as connect:
        name, at_home, value = node.topic_of(1, topic), node.topic_of(0, topic), "x" * 60_000
        client, hung, other = connect(worker=0), connect(worker=1), connect(worker=0)
        with node.hung(hung):
            for id in range(40):
                client.call(":send!", id, 60_000, name, value)
            client.call(":ping", "then")
            refused = {}
            while (answer := client.reply())[0] != ":ping":
                error = refusal(answer)
                refused[error.id] = (error.code, error.details["limit"])
            assert set(refused.values()) == {("busy", "mesh_bytes")}
            # Others, and other topics, are not touched by it.
            assert other.ask(":send!", 1, 0, at_home, value) == TIMED_OUT
        kept = [id for id in range(40) if id not in refused]
        assert len(kept) > 4
        assert [hung.ask(":recv!", id, 5000, name) for id in kept] == [value] * len(kept)
        assert sorted(client.replies(len(kept))) == [[":send!", id, True] for id in kept]
        client.call(":send!", "again", 60_000, name, value)
        assert hung.ask(":recv!", "again", 5000, name) == value


def test_a_subscription_counts_until_the_worker_that_owns_its_topic_knows_of_its_end(topic: str) -> None:
    with simulated(workers=2, max_calls=50) as node, clients_of(node.address) as connect:
        name = node.topic_of(1, topic)
        client, hung = connect(worker=0), connect(worker=1)
        with node.hung(hung):
            for id in range(200):
                client.call(":subscribe", id, name)
                client.call(":unsubscribe", 1000 + id, id)
            client.call(":ping", "then")
            refused, there_was_none = set(), set()
            while (answer := client.reply())[0] != ":ping":
                if answer[0] == ":unsubscribe":
                    assert answer[2] is False
                    there_was_none.add(answer[1] - 1000)
                else:
                    error = refusal(answer)
                    assert (error.code, error.details["limit"]) == ("busy", "max_calls")
                    refused.add(error.id)
            assert refused == there_was_none == {*range(50, 200)}
        assert sorted(client.replies(100)) == sorted(
            [[":subscribe", id, True] for id in range(50)] + [[":unsubscribe", 1000 + id, True] for id in range(50)]
        )
        assert client.ask(":subscribe", "again", name) is True


class TestConnections:
    def test_one_too_many_is_told_busy_and_closed_while_the_others_go_on(self, node: Node, connect: Clients) -> None:
        inside, refused = [], []
        for _ in range(60 * node.workers + 40):
            client = connect()
            client.call(":ping", "in?")
            method, id, result = client.reply()
            if result is True:
                inside.append(client)
            else:
                error = refusal([method, id, result])
                assert (method, id, error.code) == (":error", None, "busy")
                assert error.details == {"limit": "max_connections", "value": 60}
                with pytest.raises(ConnectionEnded):
                    client.read_frame()
                client.close()
                refused.append(client)
        assert refused
        assert len(inside) <= 60 * node.workers
        assert all(client.ask(":ping", 2) is True for client in inside)
        for client in inside:
            client.close()
        eventually(lambda: is_free(node))

    def test_a_flood_that_never_reads_its_refusals_is_got_rid_of(self, node: Node, connect: Clients) -> None:
        survivor = connect()
        assert survivor.ask(":ping", 1) is True
        flood = [connect() for _ in range(100 * node.workers)]
        for client in flood:
            client.write(call(":ping", 1))
        assert survivor.ask(":ping", 2) is True
        eventually(lambda: node.connections() <= 60 * node.workers)
        assert survivor.ask(":ping", 3) is True
        for client in flood:
            client.reset()
        eventually(lambda: is_free(node))
