"""SIGHUP: settings are read again, and workers are replaced one by one, at the cost of nobody.

What becomes of calls and subscriptions is judged by the rules of simulated runs, many of which reload nodes.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from skywalker.config import Cluster, Config, load
from tests.helpers import CLOCK, eventually
from tests.simulation.stage import stage
from tests.workers import operated
from tests.workers.processes import Node, connect, node, open_files
from tests.workers.reloads import begin_reload, reload, reloads
from tests.workers.staged import LoggingNode, config_of, simulated
from tests.workers.wire_client import TIMED_OUT, WireClient, code_of
from workers.ipc import exits
from workers.mesh import readiness, siblings
from workers.process.notify import Notifier
from workers.process.reload import merged
from workers.stats import metrics

LONG_MS = 60_000


def assert_may_have(client: WireClient, calls: int) -> None:
    """Assert that so many calls of a client may wait, and no more."""
    for _ in range(calls):
        client.begin(":recv!", LONG_MS, "topic")
    assert code_of(client.answer, ":recv!", LONG_MS, "topic") == "busy"
    assert client.info("topic")["receivers"] == calls
    client.close()


# Settings.


def test_settings_that_are_read_again_hold_for_who_connects_then() -> None:
    with operated.node(workers=2, max_calls=1, drain_timeout_s=0) as running:
        assert_may_have(running.connect(), 1)
        running.node.limit(max_calls=2)
        reload(running)
        assert not {*running.first_workers} & {*running.workers()}
        for slot in (0, 1):
            assert_may_have(running.connect_to(slot), 2)


def test_the_manager_is_told_how_long_a_reload_takes_by_the_settings_that_it_brings() -> None:
    with operated.node(workers=2, drain_timeout_s=1) as running, mock.patch.object(Notifier, "takes") as takes:
        running.node.configure(drain_timeout_s=60.0)
        first = running.connect_to(0)  # and stays
        begin_reload(running)
        began_at = CLOCK.monotonic()
        eventually(lambda: reloads(running), 200.0)
        took_s = CLOCK.monotonic() - began_at
        first.close()
        [told] = [call.args[0] for call in takes.mock_calls]
        assert 60 < took_s < told


def test_how_the_log_is_written_changes_by_a_reload_in_all_processes() -> None:
    with operated.node(workers=2, log_format="json", log_level="warning", drain_timeout_s=0) as running:
        assert running.log() == ""
        running.node.configure(log_level="info")
        begin_reload(running)
        eventually(lambda: '"event": "reloaded"' in running.log())
        running.kill(running.workers()[0], signal.SIGTERM)
        eventually(lambda: '"event": "worker-ended"' in running.log())
        lines = [json.loads(line) for line in running.log().splitlines()]
        assert {line["event"] for line in lines} >= {"reloaded", "worker-draining", "worker-ended"}
        running.node.configure(log_format="logfmt")
        begin_reload(running)
        eventually(lambda: running.events("reloaded"))


def test_doors_that_follow_bind_stay_with_the_one_that_is_kept() -> None:
    def settings(bind: str, service: str) -> Config:
        return load({"bind": bind, "silk": ":3444", "silk_pub": ":3445", "health_port": "80", "service": service})

    old, new = settings("10.0.0.1", "a"), settings("0.0.0.0", "b")
    kept, waiting = merged(old, new)
    assert {kept.bind, kept.admin_host, kept.health_host, kept.pubsub_address[0]} == {"10.0.0.1"}
    assert kept.cluster == dataclasses.replace(old.cluster, service="b")
    assert waiting == ["bind"]


BAD = {
    "[limits]\nmax_calls = 'many'": "max_calls",
    "no_such_key = 1": "no_such_key",
    "limits = ": "",
    "port = 70000": "port",
    "\x00\xff": "",
    "cluster = 3": "cluster",
    "open = true\ntls_cert = '{file}'": "{file} holds no certificate with its key",
    "open = true\njournal = '{file}/journal'": "cannot write to",
    "bind = '127.0.0.1'\nopen = false": "whoever gets to 0.0.0.0 could do everything",  # where it stays
}


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Path]]:
    """A real node with a config file, which a flag outdoes in one thing."""
    file = tmp_path_factory.mktemp("configured") / "skywalker.toml"
    file.write_text("bind = '0.0.0.0'\nopen = true\n")
    with node(settings=["--config", str(file), "--max-calls=3"], drain_timeout_s=0) as running:
        yield running, file


def test_a_bad_file_changes_nothing(configured: tuple[Node, Path]) -> None:
    running, file = configured
    with running.connect() as client:
        for number, (text, told) in enumerate([*BAD.items(), ("", "No such file")], 1):
            if text:
                file.write_text(text.replace("{file}", str(file)))
            else:
                file.unlink()
            begin_reload(running)
            eventually(lambda count=number: len(running.events("reload-refused")) == count)
            reason = running.events("reload-refused")[-1]["reason"]
            assert told.replace("{file}", str(file)) in reason
        assert client.answer(":recv!", 0, "a") == TIMED_OUT
        assert running.workers() == running.first_workers
        assert not running.events("reloading")


def test_settings_that_need_a_restart_are_named_and_the_others_hold_but_for_those_that_a_flag_outdoes(
    configured: tuple[Node, Path],
) -> None:
    running, file = configured
    file.write_text(
        "open = true\nbacklog = 64\nname = 'other'\n"
        "[limits]\nmax_calls = 1\nmax_rate = 1\n[cluster]\nadvertise = '127.0.0.1:4000'\n"
    )
    reload(running)
    [told] = running.events("restart-needed")
    assert sorted(told["settings"].strip('"').split(",")) == ["backlog", "bind", "cluster.advertise", "name"]
    with running.connect() as client:
        assert client.greeting["name"] != "other"
        codes = [code_of(client.answer, ":cancel", 1) for _ in range(2)]
        assert codes[-1] == "busy"


# Calls.


def test_calls_at_a_worker_that_is_replaced_are_counted_and_cancelled_where_they_wait_now() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running:
        old = running.connect_to(0)
        topic = old.topic_owned_by(0)
        calls = [old.begin(":recv!", LONG_MS, topic) for _ in range(3)]
        old.wait_until(topic, receivers=3)
        begin_reload(running)
        running.wait_for_successor(0)
        other = running.connect()
        other.wait_until(topic, receivers=3)
        assert old.answer(":topic", topic)["receivers"] == 3
        assert old.answer(":cancel", calls[0]) is True
        assert code_of(old.result, calls[0]) == "cancelled"
        assert code_of(old.answer, ":recv!", 0, "new") == "draining"
        other.wait_until(topic, receivers=2)
        assert other.answer(":send!", 1_000, topic, "value") is True
        assert [old.result(call) for call in calls[1:]] == ["value"] * 2


@pytest.mark.parametrize("replaced", ["receiver", "owner", "sender"])
def test_a_value_that_waits_for_its_ack_across_a_reload_gets_it(replaced: str) -> None:
    # The worker of one of the three is the first to be replaced; the others stay as they are meanwhile.
    slots = {role: number for number, role in enumerate(sorted(("receiver", "owner", "sender"), key=replaced.__ne__))}
    with operated.node(workers=3, drain_timeout_s=60) as running:
        receiver, sender, other = (running.connect_to(slot) for slot in (slots["receiver"], slots["sender"], 1))
        receiver.answer(":hello", {"ack": True})
        topic = receiver.topic_owned_by(slots["owner"])
        receive = receiver.begin(":recv!", LONG_MS, topic)
        sender.wait_until(topic, receivers=1)
        send = sender.begin(":send!", LONG_MS, topic, "value")
        assert receiver.result(receive) == "value"
        begin_reload(running)
        running.wait_for_successor(0)
        # As long as a worker may take that leaves its topics to another.
        assert other.answer(":recv!", 1_200, topic) == TIMED_OUT, "it is not known yet to be lost"
        receiver.call(":ack", receive)
        assert sender.result(send) is True


def test_a_value_whose_ack_does_not_come_before_its_worker_ends_goes_to_another() -> None:
    with operated.node(workers=2, drain_timeout_s=0.5) as running:
        receiver, sender = running.connect_to(0), running.connect_to(1)
        receiver.answer(":hello", {"ack": True})
        topic = receiver.topic_owned_by(1)
        receive = receiver.begin(":recv!", LONG_MS, topic)
        sender.wait_until(topic, receivers=1)
        send = sender.begin(":send!", LONG_MS, topic, "value")
        assert receiver.result(receive) == "value"
        begin_reload(running)
        assert running.connect_to(1).answer(":recv!", 5_000, topic) == "value"
        assert sender.result(send) is True


def test_calls_of_others_wait_but_a_moment_for_a_predecessor_that_hangs() -> None:
    with operated.node(workers=2, drain_timeout_s=60, watchdog_s=60.0) as running:
        running.connect_to(0)
        client, other = running.connect_to(1), running.connect_to(1)
        topic = client.topic_owned_by(0)
        client.wait_until(topic, receivers=0)
        begin_reload(running)
        running.next_fork()
        running.kill(running.first_workers[0], signal.SIGSTOP)
        CLOCK.sleep(0.1)  # there is a successor, of which the others hear
        asked_at = CLOCK.monotonic()
        waiting = client.begin(":recv!", LONG_MS, topic)
        assert other.answer(":send!", 5_000, topic, "value") is True
        assert client.result(waiting) == "value"
        assert CLOCK.monotonic() - asked_at < readiness.PATIENCE_S + siblings.PARTING_S


def test_calls_of_others_go_on_at_once_where_a_successor_has_the_topic() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running:
        running.connect_to(0)
        client, other = running.connect_to(1), running.connect_to(1)
        topic, slowest_s = client.topic_owned_by(0), 0.0
        begin_reload(running)
        until = CLOCK.monotonic() + 2.0
        while CLOCK.monotonic() < until:
            asked_at = CLOCK.monotonic()
            waiting = client.begin(":recv!", LONG_MS, topic)
            assert other.answer(":send!", 5_000, topic, "value") is True
            assert client.result(waiting) == "value"
            slowest_s = max(slowest_s, CLOCK.monotonic() - asked_at)
        assert running.node.pid_behind(running.connect_to(0)) != running.first_workers[0]
        assert slowest_s < siblings.PARTING_S / 2, "as if nobody had said that the first hands out nothing more"


# Connections.


def test_nobody_is_refused_or_reset_while_a_node_is_reloaded_again_and_again() -> None:
    # By real processes: whom a kernel has let in already waits for whoever has the listener next.
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
        threads = [threading.Thread(target=knock, args=[running]) for _ in range(3)]
        reload(running)

        def files() -> list[int]:
            return [open_files(pid) for pid in (running.pid, *running.workers())]

        before = files()  # maybe with some that a worker which was replaced closes in a moment
        for thread in threads:
            thread.start()
        try:
            reloads = 0
            while reloads < 4 or (connected[0] <= 100 and not problems):  # a slow machine lets fewer in meanwhile
                reload(running)
                reloads += 1
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert problems == []
        assert connected[0] > 100
        assert len(running.workers()) == 2
        eventually(lambda: all(map(operator.le, files(), before)))  # no descriptor is left behind


def test_a_connection_that_nobody_uses_is_closed_when_its_worker_has_had_its_time_and_not_reset() -> None:
    with operated.node(workers=1, drain_timeout_s=0.5) as running:
        idle = running.connect()
        assert idle.answer(":ping") is True
        began = CLOCK.monotonic()
        begin_reload(running)
        assert idle.socket.recv(1) == b""
        assert 0.5 <= CLOCK.monotonic() - began < 0.6
        eventually(lambda: running.events("reloaded"))


# One thing after the other.


def test_a_signal_that_comes_during_a_reload_has_the_node_reloaded_once_more() -> None:
    with operated.node(workers=2, max_calls=1, drain_timeout_s=60) as running:
        old = running.connect_to(0)
        begin_reload(running)
        running.wait_for_successor(0)
        running.node.limit(max_calls=2)
        for _ in range(5):
            begin_reload(running)
            old.answer(":ping")
        assert not running.events("reloaded")
        for client in running.clients:
            client.close()
        eventually(lambda: len(running.events("reloaded")) == 2)
        assert_may_have(running.connect(), 2)
        assert len(running.events("reloading")) == 2


@pytest.mark.parametrize("pause_s", [0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.1])
def test_a_node_that_is_told_to_end_during_a_reload_ends_in_good_order(pause_s: float) -> None:
    with operated.node(workers=2, drain_timeout_s=5) as running:
        client = running.connect_to(0)
        waiting = client.begin(":recv!", 300, client.topic_owned_by(1))
        client.answer(":ping")
        begin_reload(running)
        CLOCK.sleep(pause_s)  # not for anything: the moment is the point
        running.signal(signal.SIGTERM)
        assert client.result(waiting) == TIMED_OUT
        assert running.wait(within=2.0) == exits.OK
        assert "Traceback" not in running.log()


def test_a_reload_before_the_node_serves_is_done_once_it_does() -> None:
    with stage() as on:
        starts = LoggingNode(on.net, "node", on.host(), 2, config_of({}, ""))
        assert on.until(lambda: len(starts.workers()) == 2)
        assert not starts.serves
        starts.reload()
        assert on.until(lambda: metrics.RELOADED.total(starts.supervisor._shared.node) == 1, 5.0)
        starts.close()


def test_a_node_that_ends_is_not_reloaded() -> None:
    with operated.node(workers=2, drain_timeout_s=60) as running:
        client = running.connect_to(0)
        waiting = client.begin(":recv!", 500, "topic")
        client.answer(":ping")
        running.signal(signal.SIGTERM)
        eventually(lambda: running.events("draining"))
        begin_reload(running)
        assert client.result(waiting) == TIMED_OUT
        assert running.wait(within=2.0) == exits.OK
        assert reloads(running) == []


# With an agent.


def test_a_reload_starts_an_agent_that_it_finds_work_for_and_ends_one_that_has_none_any_more() -> None:
    with operated.node(workers=2, drain_timeout_s=0) as running:
        assert not running.node.agent
        seen = {0}
        for _ in range(2):
            running.node.configure(cluster=Cluster(join="10.9.9.9:1"))
            reload(running)
            eventually(lambda: running.node.agent not in seen)
            seen.add(running.node.agent)
        for _ in range(2):
            running.node.configure(cluster=Cluster())
            reload(running)
            eventually(lambda: not running.node.agent)
        assert len(running.workers()) == 2
        assert not running.events("agent-ended")


def test_nodes_that_were_refused_join_one_that_a_reload_brings_a_cluster() -> None:
    with stage() as on, operated.node(host=on.host()) as running:
        host, port = running.node.address
        with simulated(2, host=on.host(), join=f"{host}:{port}", harmed=True) as other:
            eventually(lambda: "lets nobody join" in other.log)
            running.node.configure(cluster=Cluster(join="10.9.9.9:1"))
            reload(running, 20.0)
            eventually(lambda: other.ring() == running.node.ring() == [2, 2], 10.0)


def test_agents_that_end_by_themselves_are_counted_and_those_that_a_reload_replaces_are_not() -> None:
    with operated.node(workers=1, join="10.9.9.9:1", drain_timeout_s=0) as running:
        figures = running.node.figures
        for _ in range(2):
            before = eventually(lambda: running.node.agent)
            reload(running)
            eventually(lambda agent=before: running.node.agent not in (0, agent))
        assert figures[metrics.RELOADED.cell("done")] == figures[metrics.RESTARTED.cell("reload")] == 2
        assert figures[metrics.AGENT_RESTARTED.at] == 0
        running.kill(running.node.agent, signal.SIGKILL)
        eventually(lambda: figures[metrics.AGENT_RESTARTED.at] == 1)
