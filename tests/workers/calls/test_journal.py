"""A node's journal has every call once, with what became of it, however it ended."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest

import skywalker
from skywalker.embedding import StartError
from skywalker.errors import ConfigError
from skywalker.ring import token_of
from tests.helpers import eventually
from tests.journal.raw import Record, calls_in, header_of, names_in
from tests.workers.pubsub_client import PubSubClient
from tests.workers.running_nodes import Node, running
from tests.workers.wire_client import Clients, clients_of
from workers.process.command import _check_writable

Journal = Callable[[str], list[Record]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Path]]:
    """A node, and where its journal is."""
    directory = tmp_path_factory.mktemp("journal")
    with running(workers=2, journal=str(directory), journal_rotate="64MiB/100ms", max_calls=5, pubsub=True) as node:
        yield node, directory


@pytest.fixture
def node(kept: tuple[Node, Path]) -> Node:
    return kept[0]


@pytest.fixture
def journal(kept: tuple[Node, Path]) -> Journal:
    """Returns what was recorded of a topic."""

    def of(topic: str) -> list[Record]:
        token = token_of(msgpack.packb(topic))
        return [record for record in calls_in(kept[1]) if record.token == token]

    return of


def topics_of(node: Node, topic: str) -> list[str]:
    """Return one that each of the workers owns."""
    return [node.topic_of(owner, topic) for owner in range(node.workers)]


def recorded(journal: Journal, topic: str, count: int) -> list[Record]:
    """Return so many records of a topic, by the time they ended, once they are there."""

    def enough() -> list[Record]:
        found = journal(topic)
        return found if len(found) >= count else []

    found = eventually(enough)
    assert len(found) == count, found
    return sorted(found, key=lambda record: record.ended)


def ends(records: list[Record]) -> Counter[tuple[str, str]]:
    return Counter((record.method, record.outcome) for record in records)


def test_both_sides_of_a_rendezvous_are_recorded(node: Node, connect: Clients, topic: str, journal: Journal) -> None:
    names = topics_of(node, topic)
    for name in names:
        receiver, sender = connect(worker=0), connect(worker=0)
        receiver.call(":recv!", 1, 5000, name)
        receiver.wait_until(name, receivers=1)
        assert sender.ask(":send!", 1, 5000, name, "x" * 100) is True
    for owner, name in enumerate(names):
        first, second = recorded(journal, name, 2)
        sent, received = (first, second) if first.method == "send" else (second, first)
        is_here = owner == 0
        assert (sent.method, sent.outcome) == ("send", "prompt" if is_here else "met")
        assert (received.method, received.outcome) == ("recv", "met")
        assert {sent.route, received.route} == {"here" if is_here else "sibling"}
        assert sent.size == received.size == 102
        assert sent.door == received.door == "junction"
        assert sent.connection != received.connection
        assert sent.worker == received.worker == 0
        assert 0 <= sent.wait < 5
        assert 0 <= received.wait < 5
        assert 0 <= time.monotonic() - sent.ended < 30


def test_every_end_without_a_partner_is_recorded_as_what_it_was(
    node: Node, connect: Clients, topic: str, journal: Journal
) -> None:
    names = topics_of(node, topic)
    for name in names:
        client, leaver = connect(worker=0), connect(worker=0)
        client.ask(":recv!", "late", 30, name)
        client.ask(":recv!", "probe", 0, name)
        client.call(":recv!", "unwanted", 60_000, name)
        client.call(":cancel", "c", "unwanted")
        client.replies(2)
        for id in range(6):
            leaver.call(":recv!", id, 60_000, name)
        leaver.refusal()  # the sixth is one too many
        leaver.close()
    for name in names:
        assert ends(recorded(journal, name, 9)) == {
            ("recv", "timed-out"): 2, ("recv", "cancelled"): 1, ("recv", "gone"): 5, ("recv", "busy"): 1,
        }  # fmt: skip
        late, probe = sorted(
            (each for each in journal(name) if each.outcome == "timed-out"), key=lambda each: -each.wait
        )
        assert late.wait >= 0.03
        assert probe.wait < late.wait


def test_a_send_that_may_have_been_taken_is_recorded_as_that(
    node: Node, connect: Clients, topic: str, journal: Journal
) -> None:
    names = topics_of(node, topic)
    for name in names:
        listener, sender = connect(worker=0), connect(worker=0).greet()
        listener.ask(":hello", 0, {"ack": True})
        listener.call(":recv!", 1, 60_000, name)
        sender.call(":send!", 1, 500, name, "value")
        assert listener.reply() == [":recv!", 1, "value"]
        assert sender.refusal().code == "unknown-outcome"
        listener.call(":ack", 1)
    for name in names:
        assert ends(recorded(journal, name, 2)) == {("send", "unknown-outcome"): 1, ("recv", "met"): 1}


def test_values_on_their_way_to_who_leaves_are_recorded_once(
    node: Node, connect: Clients, topic: str, journal: Journal
) -> None:
    name = node.topic_of(0, topic)
    receiver, sender, other = connect(worker=0), connect(worker=0), connect(worker=0)
    receiver.ask(":hello", "h", {"ack": True})
    receiver.call(":recv!", 1, 5000, name)
    sender.call(":send!", 1, 5000, name, "value")
    assert receiver.reply()[2] == "value"
    receiver.close()  # without an :ack
    assert other.ask(":recv!", 1, 5000, name) == "value"
    assert sender.reply()[2] is True
    assert ends(recorded(journal, name, 3)) == {("recv", "gone"): 1, ("recv", "prompt"): 1, ("send", "met"): 1} or ends(
        journal(name)
    ) == {("recv", "gone"): 1, ("recv", "prompt"): 1, ("send", "prompt"): 1}


def test_what_is_published_is_recorded_and_what_subscribers_get_is_not(
    node: Node, connect: Clients, topic: str, journal: Journal
) -> None:
    names = topics_of(node, topic[:200])
    for name in names:
        client = connect(worker=0)
        assert client.ask(":subscribe", "s", name) is True
        with PubSubClient.open(node.pubsub) as publisher:
            publisher.publish(name.encode(), b"payload")
        assert client.reply()[2] == b"payload"
    for name in names:
        (only,) = recorded(journal, name, 1)
        assert (only.method, only.outcome, only.door, only.size) == ("publish", "prompt", "pubsub", 9)


def test_topics_have_their_names(node: Node, connect: Clients, topic: str, kept: tuple[Node, Path]) -> None:
    client = connect(worker=0)
    names = [f"{topic}-é", 7, -1, b"bytes", ["a", {"b": None}], "x" * 4000]
    for name in names:
        client.ask(":recv!", 1, 0, name)
    tokens = {token_of(msgpack.packb(name)): name for name in names}
    eventually(lambda: tokens.items() <= names_in(kept[1]).items())


def test_the_owner_of_every_call_can_be_told_by_the_ring_that_is_on_record(
    node: Node, connect: Clients, topic: str, kept: tuple[Node, Path], journal: Journal
) -> None:
    names = [f"{topic} {number}" for number in range(20)]
    for name in names:
        connect(worker=0).ask(":recv!", 1, 0, name)
    owners = [recorded(journal, name, 1)[0].route for name in names]
    (ring,) = kept[1].glob("*.ring")
    assert {header_of(path)["ring"] for path in kept[1].glob("*.calls*")} == {ring.stem}
    (member,) = msgpack.unpackb(ring.read_bytes())
    assert member["slicing"] == 1
    # As docs/journal.md has it.
    found = [token_of(msgpack.packb(name)) % 2**32 * int(member["workers"]) // 2**32 for name in names]
    assert owners == ["here" if worker == 0 else "sibling" for worker in found]


def test_a_sample_is_one_of_all_calls_and_not_of_every_second_one(tmp_path: Path, topic: str) -> None:
    with running(workers=1, journal=str(tmp_path), journal_sample="1/8") as node, clients_of(node.address) as connect:
        receiver, sender = connect(worker=0), connect(worker=0)
        for id in range(2000):  # in turns, as programs call
            receiver.call(":recv!", id, 60_000, topic)
            sender.call(":send!", id, 60_000, topic, id)
            receiver.reply()
            sender.reply()
    counts = Counter(record.method for record in calls_in(tmp_path))
    assert all(150 < counts[method] < 350 for method in ("send", "recv")), counts
    assert {header_of(path)["sample"] for path in tmp_path.glob("*-w*")} == {8}


def test_the_end_of_a_node_completes_its_journal(tmp_path: Path, topic: str) -> None:
    with running(workers=2, journal=str(tmp_path)) as node, clients_of(node.address) as connect:
        for worker in range(2):
            connect(worker=worker).ask(":recv!", 1, 0, topic)
    assert len(calls_in(tmp_path)) == 2
    assert not [*tmp_path.glob("*.open")]


def test_a_worker_that_is_killed_loses_the_last_second_and_its_successor_completes_the_rest(
    tmp_path: Path, topic: str
) -> None:
    with skywalker.embedded(workers=1, journal=str(tmp_path)) as node:
        with node.connect() as client:
            assert client.recv(topic, timeout=0, default=None) is None
        (left,) = eventually(lambda: calls_in(tmp_path) and [*tmp_path.glob("*.open")])
        (pid,) = node.worker_pids()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: node.worker_pids() not in ([], [pid]))
        eventually(lambda: not left.exists())
        assert len(calls_in(tmp_path)) == 1


def test_a_node_with_nowhere_to_write_its_journal_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(StartError) as told, running(workers=1, journal=str(tmp_path / "file")):
        pass
    assert f"journal: cannot write to {tmp_path / 'file'}: it is not a directory: give a dir" in str(told.value)
    with pytest.raises(ConfigError, match="Not a directory: give a directory"):
        _check_writable(tmp_path / "file" / "journal")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # who runs the tests may write anywhere
    with pytest.raises(ConfigError, match=r"^journal: cannot write to .*: the node may not write, or the disk is"):
        _check_writable(tmp_path)


def test_a_node_whose_journal_cannot_be_written_any_more_serves_nevertheless_and_says_so(
    tmp_path: Path, topic: str
) -> None:
    directory = tmp_path / "journal"
    with (
        running(workers=1, journal=str(directory), journal_rotate="1MiB/100ms") as node,
        clients_of(node.address) as connect,
    ):
        directory.rename(tmp_path / "away")
        directory.write_text("no directory")
        client = connect(worker=0)

        def calls() -> bool:
            client.ask(":recv!", 1, 0, topic)
            return "journal-stopped" in node.log

        eventually(calls)
        line = eventually(lambda: next(line for line in node.log.splitlines() if "journal-stopped" in line))
        assert "Not a directory" in line
        assert client.ask(":ping", 2) is True
