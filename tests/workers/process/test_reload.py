"""SIGHUP: settings are read again, and workers are replaced one by one, at the cost of nobody."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

import skywalker
from skywalker import embedding
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.config import Config, load
from tests.admin import asking
from tests.helpers import CLOCK, eventually, time_factor
from tests.journal.raw import calls_in
from tests.workers import operated
from tests.workers.processes import FAULTY, Node, connect, is_gone, node, open_files
from tests.workers.pubsub_bus import doors_of, pubsub_node
from tests.workers.reloads import Wanderer, begin_reload, reload, reloads, wait_for_successor
from tests.workers.wire_client import TIMED_OUT, code_of
from workers.ipc import exits
from workers.process.reload import merged

LONG_MS = 60_000


@contextmanager
def configured(directory: Path, text: str = "", drain_timeout_s: float = 10.0) -> Iterator[tuple[Node, Path]]:
    """Run a node with a config file, and yield both."""
    file = directory / "skywalker.toml"
    file.write_text(text)
    with node(settings=["--config", str(file)], drain_timeout_s=drain_timeout_s) as running:
        yield running, file


def wait_for_log(running: embedding.Node, words: str, count: int) -> None:
    eventually(lambda: running.log.count(words) == count)


# Settings.


def test_what_the_file_says_now_holds_for_who_connects_after_a_reload(tmp_path: Path) -> None:
    with configured(tmp_path, "[limits]\nmax_calls = 1\n", drain_timeout_s=0) as (running, file):
        with running.connect() as client:
            client.begin(":recv!", LONG_MS, "a")
            assert code_of(client.answer, ":recv!", LONG_MS, "b") == "busy"
        file.write_text("[limits]\nmax_calls = 2\n")
        reload(running)
        assert not set(running.first_workers) & set(running.workers())
        for _ in range(8):
            with running.connect() as client:
                client.begin(":recv!", LONG_MS, "a")
                client.begin(":recv!", LONG_MS, "b")
                assert code_of(client.answer, ":recv!", LONG_MS, "c") == "busy"


def test_how_the_log_is_written_changes_by_a_reload_in_all_processes(tmp_path: Path) -> None:
    with configured(tmp_path, 'log_format = "json"\nlog_level = "warning"\n', drain_timeout_s=0) as (running, file):
        assert running.log() == ""
        file.write_text('log_format = "json"\n')
        begin_reload(running)
        eventually(lambda: '"event": "reloaded"' in running.log(), within=20.0)
        os.kill(running.workers()[0], signal.SIGKILL)
        eventually(lambda: '"event": "worker-ended"' in running.log())
        lines = [json.loads(line) for line in running.log().splitlines()]
        assert {line["event"] for line in lines} >= {"reloaded", "worker-ended"}
        file.write_text("")
        begin_reload(running)
        eventually(lambda: " event=reloaded " in running.log(), within=20.0)


def test_a_journal_that_could_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with configured(tmp_path) as (running, file):
        file.write_text(f'journal = "{tmp_path / "file" / "journal"}"')
        begin_reload(running)
        [refused] = eventually(lambda: running.events("reload-refused"))
        assert "cannot write to" in refused["reason"]
        assert sorted(running.workers()) == sorted(running.first_workers)
        file.write_text(f'journal = "{tmp_path / "journal"}"')
        reload(running)
        assert (tmp_path / "journal").is_dir()


@pytest.mark.parametrize(
    "text",
    ["[limits]\nmax_calls = 'many'", "no_such_key = 1", "limits = ", "port = 70000", "\x00\xff", "cluster = 3", None],
    ids=["value", "key", "syntax", "range", "no text", "no table", "no file"],
)
def test_a_bad_file_changes_nothing_and_a_good_one_after_it_does(tmp_path: Path, text: str | None) -> None:
    with configured(tmp_path, "[limits]\nmax_calls = 1\n") as (running, file), running.connect() as client:
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        begin_reload(running)
        [refused] = eventually(lambda: running.events("reload-refused"))
        assert str(file) in refused["reason"]
        assert client.answer(":recv!", 0, "a") == TIMED_OUT
        assert running.workers() == running.first_workers
        assert not running.events("reloading")
        client.close()
        file.write_text("[limits]\nmax_calls = 2\n")
        reload(running)
        assert not set(running.first_workers) & set(running.workers())


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    with configured(tmp_path) as (running, file):
        file.write_text(f"tls_cert = '{file}'\n")
        begin_reload(running)
        [refused] = eventually(lambda: running.events("reload-refused"))
        assert f"{file} holds no certificate with its key" in refused["reason"]
        assert running.workers() == running.first_workers


def test_settings_that_need_a_restart_are_named_and_the_others_hold_all_the_same(tmp_path: Path) -> None:
    with configured(tmp_path, drain_timeout_s=0) as (running, file):
        file.write_text(
            "backlog = 64\nname = 'other'\n[limits]\nmax_calls = 1\n[cluster]\nadvertise = '127.0.0.1:4000'\n"
        )
        reload(running)
        [told] = running.events("restart-needed")
        assert sorted(told["settings"].strip('"').split(",")) == ["backlog", "cluster.advertise", "name"]
        with running.connect() as client:
            assert client.greeting["name"] != "other"
            client.begin(":recv!", LONG_MS, "a")
            assert code_of(client.answer, ":recv!", LONG_MS, "b") == "busy"


def test_doors_that_follow_bind_stay_with_the_one_that_is_kept() -> None:
    def settings(bind: str, service: str) -> Config:
        return load({"bind": bind, "silk": ":3444", "silk_pub": ":3445", "health_port": "80", "service": service})

    old, new = settings("10.0.0.1", "a"), settings("0.0.0.0", "b")
    kept, waiting = merged(old, new)
    assert {kept.bind, kept.admin_host, kept.health_host, kept.pubsub_address[0]} == {"10.0.0.1"}
    assert kept.cluster == dataclasses.replace(old.cluster, service="b")
    assert waiting == ["bind"]


def test_a_flag_outdoes_the_file_at_a_reload_as_it_did_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text("")
    with node(settings=["--config", str(file), "--max-calls=3"], drain_timeout_s=0) as running:
        file.write_text("[limits]\nmax_calls = 1\n")
        reload(running)
        with running.connect() as client:
            for topic in ("a", "b", "c"):
                client.begin(":recv!", LONG_MS, topic)
            assert code_of(client.answer, ":recv!", LONG_MS, "d") == "busy"


# Calls.


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_calls_that_wait_at_a_worker_that_is_replaced_meet_those_of_new_connections(workers: int) -> None:
    with node(workers=workers, drain_timeout_s=60) as running, ExitStack() as stack:
        old = [stack.enter_context(running.connect_to(slot)) for slot in range(workers)]
        topics = {(a, b): old[0].topic_owned_by(b) for a in range(workers) for b in range(workers)}
        begun = {at: old[at[0]].begin(":recv!", LONG_MS, topic) for at, topic in topics.items()}
        for at, topic in topics.items():
            old[at[0]].wait_until(topic, receivers=1)
        begin_reload(running)
        for slot in range(workers):
            wait_for_successor(running, slot)
            with running.connect() as sender:
                for at, topic in topics.items():
                    if at in begun and slot in at:
                        assert sender.answer(":send!", 5_000, topic, [*at]) is True
                        assert old[at[0]].result(begun.pop(at)) == [*at]
            assert code_of(old[slot].answer, ":recv!", 0, "new") == "draining"
            old[slot].close()  # who is told so goes to another
        eventually(lambda: running.events("reloaded"))
        assert len(running.workers()) == workers
        assert not begun


def test_senders_that_wait_at_a_worker_that_is_replaced_are_met_by_new_connections() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old:
        topics = [old.topic_owned_by(owner) for owner in (0, 1)]
        sends = [old.begin(":send!", LONG_MS, topic, topic) for topic in topics]
        for topic in topics:
            old.wait_until(topic, senders=1)
        begin_reload(running)
        wait_for_successor(running, 0)
        with running.connect() as receiver:
            assert [receiver.answer(":take!", 5_000, topic, "group") for topic in topics] == topics
            assert [receiver.answer(":recv!", 0, topic) for topic in topics] == [TIMED_OUT] * 2
        assert [old.result(send) for send in sends] == [True] * 2


def test_the_times_of_calls_at_a_worker_that_is_replaced_run_on() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old:
        topics = [old.topic_owned_by(owner) for owner in (0, 1)]
        began = time.monotonic()
        calls = [old.begin(":recv!", 1_500, topic) for topic in topics]
        calls += [old.begin(":send!", 1_500, topic + "s", 1) for topic in topics]
        old.answer(":ping")
        begin_reload(running)
        wait_for_successor(running, 0)
        assert [old.result(call) for call in calls] == [TIMED_OUT] * 4
        assert 1.5 <= time.monotonic() - began < 1.6 + 0.2 * time_factor()


def test_calls_at_a_worker_that_is_replaced_are_counted_and_cancelled_where_they_wait_now() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old:
        topic = old.topic_owned_by(0)
        calls = [old.begin(":recv!", LONG_MS, topic) for _ in range(3)]
        old.wait_until(topic, receivers=3)
        begin_reload(running)
        wait_for_successor(running, 0)
        with running.connect() as other:
            other.wait_until(topic, receivers=3)
            assert old.answer(":topic", topic)["receivers"] == 3
            assert old.answer(":cancel", calls[0]) is True
            assert code_of(old.result, calls[0]) == "cancelled"
            other.wait_until(topic, receivers=2)
            assert other.answer(":send!", 1_000, topic, "value") is True
            assert [old.result(call) for call in calls[1:]] == ["value"] * 2


def test_a_client_that_waits_a_minute_meets_across_two_reloads_and_hears_nothing_of_them() -> None:
    with skywalker.embedded(workers=2, drain_timeout_s=0.3) as running, ExitStack() as stack:
        topics = [f"topic-{number}" for number in range(20)]
        got: dict[str, object] = {}

        def receive(client: skywalker.Client, topic: str) -> None:
            got[topic] = client.recv(topic, timeout=60)

        clients = [stack.enter_context(running.connect()) for _ in range(4)]
        threads = [
            threading.Thread(target=receive, args=(clients[number % 4], topic)) for number, topic in enumerate(topics)
        ]
        for thread in threads:
            thread.start()
        for done in (1, 2):
            os.kill(running.pid, signal.SIGHUP)
            wait_for_log(running, "event=reloaded", done)
        for topic in topics:
            clients[0].send(topic, topic, timeout=5 * time_factor())
        for thread in threads:
            thread.join()
        assert got == {topic: topic for topic in topics}
        assert "Traceback" not in running.log


@pytest.mark.parametrize("replaced", ["receiver", "owner", "sender"])
def test_a_value_that_waits_for_its_ack_across_a_reload_gets_it(replaced: str) -> None:
    # The worker of one of the three is the first to be replaced; the others stay as they are meanwhile.
    slots = {role: number for number, role in enumerate(sorted(("receiver", "owner", "sender"), key=replaced.__ne__))}
    with (
        node(workers=3, drain_timeout_s=60) as running,
        running.connect_to(slots["receiver"]) as receiver,
        running.connect_to(slots["sender"]) as sender,
        running.connect_to(1) as other,
    ):
        receiver.answer(":hello", {"ack": True})
        topic = receiver.topic_owned_by(slots["owner"])
        receive = receiver.begin(":recv!", LONG_MS, topic)
        sender.wait_until(topic, receivers=1)
        send = sender.begin(":send!", LONG_MS, topic, "value")
        assert receiver.result(receive) == "value"
        begin_reload(running)
        wait_for_successor(running, 0)
        again = other.begin(":recv!", 1_200, topic)
        # As long as a worker may take that leaves its topics to another.
        assert other.result(again) == TIMED_OUT, "it is not known yet to be lost"
        receiver.call(":ack", receive)
        assert sender.result(send) is True


def test_a_value_whose_ack_does_not_come_before_its_worker_ends_goes_to_another() -> None:
    with operated.node(workers=2, drain_timeout_s=0.5) as running, running.connect_to(0) as receiver:
        receiver.answer(":hello", {"ack": True})
        sender = running.connect_to(1)
        topic = receiver.topic_owned_by(1)
        receive = receiver.begin(":recv!", LONG_MS, topic)
        sender.wait_until(topic, receivers=1)
        send = sender.begin(":send!", LONG_MS, topic, "value")
        assert receiver.result(receive) == "value"
        begin_reload(running)
        with running.connect_to(1) as other:
            assert other.answer(":recv!", 5_000, topic) == "value"
        assert sender.result(send) is True


def test_ten_thousand_calls_wait_on_while_their_worker_is_replaced() -> None:
    count = 10_000
    with (
        node(workers=2, drain_timeout_s=60, settings=[f"--max-calls={count}"]) as running,
        running.connect_to(0) as old,
        running.connect_to(1) as other,
    ):
        topics = [f"many-{number}" for number in range(count)]
        with old.in_one_write():
            calls = [old.begin(":recv!", LONG_MS, topic) for topic in topics]
        other.wait_until(topics[-1], receivers=1)
        begin_reload(running)
        wait_for_successor(running, 0)
        longest = 0.0
        for _ in range(20):
            began = time.monotonic()
            other.answer(":ping")
            longest = max(longest, time.monotonic() - began)
        with running.connect_to(0) as sender:
            with sender.in_one_write():
                sends = [sender.begin(":send!", 20_000, topic, topic) for topic in topics]
            assert [old.result(call) for call in calls] == topics
            assert [sender.result(send) for send in sends] == [True] * count
        assert longest < 0.5 * time_factor()


# Connections.


def test_nobody_is_refused_or_reset_while_a_node_is_reloaded_again_and_again() -> None:
    stop = threading.Event()
    problems: list[BaseException] = []
    connected = [0]

    def knock(running: Node) -> None:
        try:
            while not stop.is_set():
                with connect(running.port) as client:
                    # Whoever lets it in answers, and be it with the word to go elsewhere.
                    client.answer(":ping")
                connected[0] += 1
        except BaseException as error:
            problems.append(error)

    with node(workers=2, drain_timeout_s=10) as running:
        threads = [threading.Thread(target=knock, args=[running]) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                reload(running)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert problems == []
        assert connected[0] > 100
        assert len(running.workers()) == 2


def test_connections_in_the_accept_queue_of_a_worker_that_hangs_are_served_by_its_successor() -> None:
    with operated.node(workers=1, drain_timeout_s=0.3) as running:
        [worker] = running.first_workers
        running.kill(worker, signal.SIGSTOP)
        clients = [running.connect() for _ in range(50)]
        pings = [client.begin(":ping") for client in clients]
        begin_reload(running)
        assert [client.result(ping) for client, ping in zip(clients, pings, strict=True)] == [True] * 50
        eventually(lambda: running.events("reloaded"))
        assert running.is_gone(worker)


def test_a_connection_that_nobody_uses_is_closed_when_its_worker_has_had_its_time_and_not_reset() -> None:
    with node(workers=1, drain_timeout_s=0.5) as running, running.connect() as idle:
        assert idle.answer(":ping") is True
        began = time.monotonic()
        begin_reload(running)
        assert idle.socket.recv(1) == b""
        assert time.monotonic() - began >= 0.5
        eventually(lambda: running.events("reloaded"))


def test_without_a_drain_timeout_calls_that_wait_are_told_to_go_elsewhere_at_once() -> None:
    with operated.node(workers=2, drain_timeout_s=0) as running, running.connect_to(0) as client:
        waiting = [client.begin(":recv!", LONG_MS, client.topic_owned_by(slot)) for slot in (0, 1)]
        client.answer(":ping")
        reload(running, within=5.0)
        assert [code_of(client.result, call) for call in waiting] == ["draining"] * 2
        assert len(running.workers()) == 2


# Pub/sub.


def test_subscribers_miss_nothing_and_get_nothing_twice_while_the_owner_of_their_topics_is_replaced() -> None:
    with pubsub_node(2, drain_timeout_s=60) as running, doors_of(running.bus) as doors:
        topics = [running.bus.topic(owner).encode() for owner in (0, 1)]
        subscribers = doors.everywhere()
        for subscriber in subscribers:
            subscriber.subscribe(*topics)
        publisher = doors.pubsub(1)
        payloads: list[bytes] = []

        def is_replaced() -> bool:
            for _ in range(50):
                payloads.append(b"%d" % len(payloads))
                for topic in topics:
                    publisher.publish(topic, payloads[-1])
            return len(running.pids()) == 3 and len(payloads) > 1_000

        os.kill(running.pid, signal.SIGHUP)
        eventually(is_replaced, 20.0)
        late = doors.pubsub(0)
        late.subscribe(*topics)
        publisher.publish(topics[0], b"late")
        assert late.message().payload == b"late"
        for subscriber in subscribers:
            got = subscriber.messages(2 * len(payloads) + 1)
            for topic in topics:
                assert [m.payload for m in got if m.topic == topic and m.payload != b"late"] == payloads


# One thing after the other.


def test_a_signal_that_comes_during_a_reload_has_the_node_reloaded_once_more(tmp_path: Path) -> None:
    with (
        configured(tmp_path, "[limits]\nmax_calls = 1\n", drain_timeout_s=60) as (running, file),
        running.connect_to(0) as old,
    ):
        begin_reload(running)
        wait_for_successor(running, 0)
        file.write_text("[limits]\nmax_calls = 2\n")
        for _ in range(5):
            begin_reload(running)
            old.answer(":ping")
        assert not running.events("reloaded")
        old.close()
        eventually(lambda: len(running.events("reloaded")) == 2)
        with running.connect() as client:
            client.begin(":recv!", LONG_MS, "a")
            client.begin(":recv!", LONG_MS, "b")
            assert code_of(client.answer, ":recv!", LONG_MS, "c") == "busy"
        assert len(running.events("reloading")) == 2


def test_a_hundred_signals_at_once_are_few_reloads() -> None:
    with operated.node(workers=2, drain_timeout_s=0) as running:
        for _ in range(100):
            begin_reload(running)
        eventually(lambda: running.events("reloaded"))
        eventually(lambda: len(running.events("reloading")) == len(running.events("reloaded")))
        assert len(running.events("reloaded")) <= 10
        assert len(running.workers()) == 2
        with running.connect() as client:
            assert client.answer(":ping") is True


@pytest.mark.parametrize("pause_s", [0.0, 0.005, 0.01, 0.02, 0.04, 0.1])
def test_a_node_that_is_told_to_end_during_a_reload_ends_in_good_order(pause_s: float) -> None:
    with operated.node(workers=2, drain_timeout_s=5) as running, running.connect_to(0) as client:
        topic = client.topic_owned_by(1)
        waiting = client.begin(":recv!", 300, topic)
        client.answer(":ping")
        begin_reload(running)
        CLOCK.sleep(pause_s)  # not for anything: the moment is the point
        running.signal(signal.SIGTERM)
        assert client.result(waiting) == TIMED_OUT
        assert running.wait(within=2.0) == exits.OK
        assert "Traceback" not in running.log()


def test_a_reload_before_the_node_serves_is_done_once_it_does() -> None:
    with node(workers=2, serves=False) as running:
        # It would end by the signal, were it not to know it yet.
        eventually(lambda: len(running.workers()) == 2)
        begin_reload(running)
        running.wait_until_it_serves()
        eventually(lambda: running.events("reloaded"))


def test_a_node_that_ends_is_not_reloaded() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as client:
        waiting = client.begin(":recv!", 500, "topic")
        client.answer(":ping")
        running.signal(signal.SIGTERM)
        eventually(lambda: running.events("draining"))
        begin_reload(running)
        assert client.result(waiting) == TIMED_OUT
        assert running.wait(within=2.0) == exits.OK
        assert reloads(running) == []


def test_twenty_reloads_leave_no_descriptor_behind() -> None:
    with node(workers=2, drain_timeout_s=0) as running:
        reload(running)

        def files() -> list[int]:
            return [open_files(pid) for pid in (running.pid, *running.workers())]

        before = files()
        for _ in range(20):
            reload(running)
        assert eventually(lambda: files() == before), (before, files())


def test_a_reload_that_is_asked_for_during_one_that_fails_is_done_after_it(fault: Path) -> None:
    with node(workers=2, drain_timeout_s=60, command=FAULTY) as running, running.connect_to(0) as old:
        begin_reload(running)
        wait_for_successor(running, 0)
        begin_reload(running)
        old.answer(":ping")
        fault.touch()
        old.close()
        eventually(lambda: running.events("reload-failed"))
        eventually(lambda: len(running.events("reloading")) == 2)
        fault.unlink(missing_ok=True)
        eventually(lambda: len(reloads(running)) == 2)
        reload(running)
        assert len(running.workers()) == 2


# With an agent.


def agent_of(running: Node) -> int:
    """Return the process of its agent, 0 if there is none."""
    for pid in running.workers():
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).name() == embedding.AGENT:
                return pid
    return 0


def health(port: int) -> int:
    """Return with what status it says that it is ready."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=5 * time_factor())) as connection:
        connection.request("GET", "/ready")
        return connection.getresponse().status


def test_a_reload_starts_an_agent_that_it_finds_work_for_and_ends_one_that_has_none_any_more(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with configured(tmp_path, drain_timeout_s=0) as (running, file):
        assert not agent_of(running)
        file.write_text(f"[cluster]\nhealth_port = {port}\n")
        reload(running)
        eventually(lambda: health(port) == 200)
        first = agent_of(running)
        reload(running)
        eventually(lambda: agent_of(running) not in (0, first))
        eventually(lambda: health(port) == 200)
        file.write_text("")
        reload(running)
        eventually(lambda: not agent_of(running))
        reload(running)
        assert not agent_of(running)
        assert len(running.workers()) == 2
        assert not running.events("agent-ended")
        file.write_text(f"[cluster]\nhealth_port = {port}\n")
        reload(running)
        eventually(lambda: health(port) == 200)
        running.signal(signal.SIGTERM)
        assert running.wait(within=5.0) == exits.OK


def test_a_reload_that_brings_a_cluster_has_the_node_join_it(tmp_path: Path) -> None:
    with skywalker.embedded(workers=1, join="127.0.0.1:1") as other, configured(tmp_path) as (running, file):
        file.write_text(f"[cluster]\njoin = '{other.address}'\n")
        reload(running)
        with running.connect() as client, connect(other.port) as there:
            eventually(lambda: len(client.answer(":nodes")["nodes"]) == 2)
            eventually(lambda: len(there.answer(":nodes")["nodes"]) == 2)
            waiting = [client.begin(":recv!", LONG_MS, f"topic-{number}") for number in range(20)]
            for number in range(20):
                assert there.answer(":send!", 5_000, f"topic-{number}", number) is True
            assert [client.result(call) for call in waiting] == [*range(20)]


def test_a_node_that_was_refused_joins_once_a_reload_of_the_other_lets_it(tmp_path: Path) -> None:
    with configured(tmp_path) as (other, file), node(settings=["--join", f"127.0.0.1:{other.port}"]) as refused:
        eventually(lambda: "lets nobody join" in refused.log())
        file.write_text("[cluster]\njoin = '127.0.0.1:1'\n")
        reload(other)
        with refused.connect() as client:
            eventually(lambda: len(client.answer(":nodes")["nodes"]) == 2)


def test_agents_that_end_by_themselves_are_counted_and_those_that_a_reload_replaces_are_not() -> None:
    before: set[int] = set()
    with asking.node(drain_timeout_s=0) as (running, asker):
        for done in (1, 2):
            before.add(asking.agent_of(running))
            os.kill(running.pid, signal.SIGHUP)
            wait_for_log(running, "event=reloaded", done)
            eventually(lambda: asking.agent_of(running) not in before)
        eventually(lambda: asker.metric("skywalker_reloads_total", result="done") == 2)
        assert asker.metric("skywalker_agent_restarts_total") == 0
        os.kill(asking.agent_of(running), signal.SIGKILL)
        eventually(lambda: asker.metric("skywalker_agent_restarts_total") == 1)
        assert asker.metric("skywalker_worker_restarts_total", cause="reload") == 2


def test_after_a_reload_that_failed_the_next_worker_has_the_settings_from_before(
    tmp_path: Path, fault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text("[limits]\nmax_calls = 1\n")
    monkeypatch.setenv("SKYWALKER_ADMIN", "true")
    with node(workers=1, settings=["--config", str(file), "--admin-port=0"], command=FAULTY) as running:
        asker = asking.Asker(eventually(lambda: running.events("serving"))[0]["admin"])
        file.write_text("[limits]\nmax_calls = 2\n")
        fault.touch()
        begin_reload(running)
        eventually(lambda: running.events("reload-failed"))
        fault.unlink()
        eventually(lambda: asker.metric("skywalker_reloads_total", result="failed") == 1)
        assert asker.metric("skywalker_reloads_total") == 1
        assert not is_gone(running.first_workers[0])
        os.kill(running.first_workers[0], signal.SIGKILL)
        with running.connect() as client:
            client.begin(":recv!", LONG_MS, "a")
            assert code_of(client.answer, ":recv!", LONG_MS, "b") == "busy"
        eventually(lambda: asker.metric("skywalker_workers_serving") == 1)


# With a journal.


def test_predecessor_and_successor_each_write_a_journal_that_can_be_read(tmp_path: Path) -> None:
    with node(workers=2, drain_timeout_s=60, settings=[f"--journal={tmp_path}"]) as running:
        wanderers = [Wanderer(running), Wanderer(running)]

        def meet(count: int) -> None:
            for number in range(count):
                with running.connect() as receiver:
                    receive = receiver.begin(":recv!", LONG_MS, "topic")
                    receiver.answer(":ping")
                    assert wanderers[number % 2].answer(":send!", 5_000, "topic", number) is True
                    assert receiver.result(receive) == number

        meet(10)
        begin_reload(running)
        wait_for_successor(running, 0)
        meet(20)

        def is_reloaded() -> bool:
            for wanderer in wanderers:
                wanderer.answer(":recv!", 0, "other")
            return bool(running.events("reloaded"))

        eventually(is_reloaded, 20.0)
        meet(10)
        running.signal(signal.SIGTERM)
        assert running.wait(within=10.0) == exits.OK
        log = running.log()
    assert "Traceback" not in log
    assert "level=error" not in log
    assert sum(wanderer.told for wanderer in wanderers) >= 1
    records = Counter(
        (record.method, "met" if record.outcome == "prompt" else record.outcome) for record in calls_in(tmp_path)
    )
    assert records["send", "met"] == records["recv", "met"] == 40
