"""What is told of a node at each path, after calls that are known."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import psutil
import pytest

import skywalker
from skywalker.embedding import Node
from tests.admin.asking import Asker, agent_of, node, stopped
from tests.cli.running import run
from tests.helpers import eventually, time_factor
from tests.workers.wire_client import WireClient, framed, packed
from workers.stats import metrics

PATHS = ["/", "/health", "/ready", "/metrics", "/api/state", "/api/topics", "/api/connections", "/api/ring"]


def meet(client: skywalker.Client, times: int, topic: object = "met") -> None:
    receiving = threading.Thread(target=lambda: [client.recv(topic) for _ in range(times)])
    receiving.start()
    for number in range(times):
        client.send(topic, number)
    receiving.join()


def test_the_state_tells_what_was_called_who_waits_and_what_each_process_uses() -> None:
    with node(workers=2, name="näme") as (found, asker), found.connect() as client:
        meet(client, 50)
        client.send("nobody", 1, timeout=0, default=None)
        waits = threading.Thread(target=lambda: client.recv("waits", timeout=5, default=None))
        waits.start()
        state = asker.once("/api/state", lambda it: it["waiting"]["recv"] == 1)
        client.send("waits", 1)
        waits.join()
        about = state["node"]
        assert (about["name"], about["version"], about["pid"]) == ("näme", skywalker.__version__, found.pid)
        assert (about["address"], about["workers"]) == (found.address, 2)
        assert (about["ready"], about["draining"]) == (True, False)
        assert about["doors"] == {"junction": found.address, "admin": found.admin_address}
        assert time.time() - 60 * time_factor() < about["started"] < state["time"] <= time.time()
        calls = state["calls"]
        assert sum(calls["send"][outcome] for outcome in ("met", "prompt")) == 50
        assert sum(calls["recv"][outcome] for outcome in ("met", "prompt")) == 50
        assert calls["send"]["timed-out"] == 1
        assert sum(state["routed"].values()) == sum(sum(of.values()) for of in calls.values())
        assert state["connections"] == sum(worker["connections"] for worker in state["workers"]) > 0
        assert 0 < state["latency"]["hand_off"]["p50"] <= state["latency"]["hand_off"]["p99"] < 1
        assert [(worker["slot"], worker["state"]) for worker in state["workers"]] == [(0, "serving"), (1, "serving")]
        assert all(worker["serving"] for worker in state["workers"])
        assert [worker["pid"] for worker in state["workers"]] == found.worker_pids()
        assert all(worker["beat_age"] < 3 * time_factor() for worker in state["workers"])
        assert {each["name"]: each["pid"] for each in state["processes"]} == {
            "supervisor": found.pid,
            "agent": agent_of(found),
            "worker-0": state["workers"][0]["pid"],
            "worker-1": state["workers"][1]["pid"],
        }
        for each in state["processes"]:
            assert each["rss"] > 2**20
            assert each["open_files"] == pytest.approx(psutil.Process(each["pid"]).num_fds(), abs=5)
        assert {*state["restarts"]} == {*metrics.RESTARTS, "agent"}
        assert not any(state["restarts"].values())


def test_rates_and_history_are_those_of_the_last_seconds() -> None:
    with node() as (found, asker), found.connect() as client:
        assert not any(asker.json("/api/history")["calls"])
        meet(client, 300)
        history = asker.once("/api/history", lambda it: sum(it["calls"]) > 500)
        lengths = {len(column) for name, column in history.items() if name not in ("step", "time")}
        assert lengths == {len(history["calls"])}
        busy = max(range(len(history["calls"])), key=history["calls"].__getitem__)
        assert 0 < history["hand_off_p50"][busy] <= history["hand_off_p99"][busy]
        assert sum(history["met"]) == pytest.approx(600, rel=0.2)
        assert history["connections"][-1] >= 1
        eventually(lambda: asker.json("/api/state")["rates"]["calls"] == 0)
        assert asker.json("/api/history")["hand_off_p50"][-1] is None


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Node, Asker]]:
    """A node of two workers, and who asks it; nobody else is there when a test begins."""
    with node(workers=2, watchdog_s=60) as found:
        yield found


def test_topics_of_every_type_are_listed_with_who_waits_and_since_when(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    topics = ["text", "<b>&\"'</b>\n", b"\0\xff", 7, ["a", {"b": [1.5, None]}], msgpack.ExtType(5, b"x"), "\u2028ü"]
    with found.connect() as client:
        waiting = [
            threading.Thread(target=lambda topic=topic: client.recv(topic, timeout=60, default=None))
            for topic in topics
        ]
        for each in waiting:
            each.start()
        try:
            first = asker.once("/api/topics", lambda it: len(it["topics"]) == len(topics), within=10)
            rows = {row["topic"]: row for row in first["topics"]}
            assert {*rows} == {
                "text",
                "<b>&\"'</b>\n",
                '{"$bin": "AP8="}',
                "7",
                '["a", {"b": [1.5, null]}]',
                '{"$ext": [5, "eA=="]}',
                "\u2028ü",
            }
            assert (first["topics_in_all"], first["looked_at"], first["silent"]) == (7, 7, [])
            for row in rows.values():
                assert (row["receivers"], row["senders"], row["takers"], row["subscribers"]) == (1, 0, 0, 0)
                assert 0 <= row["since"] < 10 * time_factor()
            ages = [row["since"] for row in first["topics"]]
            assert ages == sorted(ages, reverse=True)
            assert len(asker.json("/api/topics?limit=3")["topics"]) == 3
            assert asker.json("/api/topics?limit=3")["topics"][0]["topic"] == first["topics"][0]["topic"]
        finally:
            for topic in topics:
                client.send(topic, 1)
            for each in waiting:
                each.join()


def test_the_busiest_topic_comes_first_if_topics_are_ordered_by_their_rate(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    with found.connect() as client:
        meet(client, 40, "rare")
        began = time.monotonic()
        meet(client, 2000, "busy")
        took = time.monotonic() - began
        rows = eventually(lambda: asker.json("/api/topics?order=rate")["topics"])
        assert rows[0]["topic"] == "busy"
        assert 4000 / (took + 12) / 3 < rows[0]["rate"] < 3 * 4000
        rates = [row["rate"] for row in rows]
        assert rates == sorted(rates, reverse=True)


def test_connections_are_listed_with_their_names_and_those_that_were_closed_with_the_reason(
    shared: tuple[Node, Asker],
) -> None:
    found, asker = shared
    with found.connect(name="<i>me</i>", direct=False) as client:
        waits = threading.Thread(target=lambda: client.recv("waits", timeout=60, default=None))
        waits.start()
        [row] = eventually(
            lambda: [row for row in asker.json("/api/connections")["connections"] if row["waiting"]], within=10
        )
        assert (row["name"], row["door"]) == ("<i>me</i>", "junction")
        assert row["peer"].startswith("127.0.0.1:")
        assert 0 <= row["age"] < 10 * time_factor()
        assert (row["unread_bytes"], row["choked"], row["subscriptions"]) == (0, False, 0)
        by_waiting = asker.json("/api/connections?order=waiting&limit=1")["connections"]
        assert [each["peer"] for each in by_waiting] == [row["peer"]]
        client.send("waits", 1)
        waits.join()
    closed = eventually(
        lambda: [each for each in asker.json("/api/connections")["closed"] if row["peer"] in each["peer"]]
    )
    assert closed[0]["reason"] == "peer"
    assert closed[0]["text"] == "the peer closed it"
    assert abs(closed[0]["time"] - time.time()) < 10 * time_factor()


def test_names_of_clients_are_short_and_utf8_whatever_they_call_themselves() -> None:
    with node() as (found, asker):
        address = (found.host, found.port)
        with contextlib.ExitStack() as clients:
            for name in (b"\xd9\x03a\xffb", b"\xd9\x05\xed\xa0\x80\xc3\xa9", packed(255 * "\u20ac")):
                client = clients.enter_context(WireClient.open(address))
                client.write(framed(b"\x93" + packed(":hello") + b"\x01\x81" + packed("name") + name))
            names = asker.once("/api/connections", lambda found: all(row["name"] for row in found["connections"]))
            shown = [row["name"] for row in names["connections"] if row["name"] != ""]
            assert sorted(shown) == sorted(["a?b", "???\u00e9", 64 * "\u20ac"])
            ran = run("report", "--json", str(asker.address))
            assert ran.returncode == 0, ran.stderr
            assert json.loads(ran.stdout)["connections"]["connections"]
        closed = asker.once("/api/connections", lambda found: len(found["closed"]) >= 3)["closed"]
        json.dumps(closed, ensure_ascii=False).encode()
        assert any("a?b" in each["peer"] for each in closed)


def test_a_node_alone_is_the_whole_ring(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    ring = eventually(lambda: asker.json("/api/ring"))
    [member] = ring["members"]
    assert (member["id"], member["address"], member["share"]) == (ring["here"], found.address, 1.0)
    [[start, length, number]] = ring["arcs"]
    assert 0 <= start < 1
    assert (length, number) == (pytest.approx(1.0), 0)
    assert ring["version"] == asker.json("/api/state")["ring"]["version"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/api/topics?limit=0", "limit='0' is not a number from 1 to 1000"),
        ("/api/topics?limit=1001", "limit='1001' is not"),
        ("/api/topics?limit=%C2%B2", "limit='²' is not"),
        ("/api/topics?limit=" + "9" * 5000, "is not a number"),
        ("/api/connections?limit=-1", "limit='-1' is not"),
        ("/api/connections?limit=", "limit='' is not"),
        ("/api/topics?order=unread", "order='unread' is not one of waiting, rate"),
        ("/api/connections?order=rate", "order='rate' is not one of unread, waiting, age"),
        ("/api/connections?sort=age", "'sort' is not a parameter here"),
        ("/api/topics?limit=1&limit=2", "a parameter is given twice"),
    ],
)
def test_a_bad_parameter_is_refused_with_the_reason(admin: Asker, path: str, problem: str) -> None:
    assert problem in admin.problem(path, 400)


def test_what_is_not_there_is_a_404_and_what_would_change_something_a_405(admin: Asker) -> None:
    for path in ("/nothing", "/api", "/api/state/", "//", "/%2e%2e/etc/passwd", "/console.html"):
        assert "there is nothing at" in admin.problem(path, 404)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
        status, headers, body = admin.ask("/api/state", method)
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        assert "not done here" in json.loads(body)["error"]


@pytest.mark.parametrize("path", [*PATHS, "/api/history", "/api/events"])
def test_a_head_has_the_headers_and_no_body(admin: Asker, path: str) -> None:
    status, headers, body = admin.ask(path, "HEAD")
    assert (status, body) == (200, b"")
    assert headers["content-type"]


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
def test_nothing_may_be_framed_kept_read_by_other_pages_or_load_from_elsewhere(admin: Asker, path: str) -> None:
    _, headers, _ = admin.ask(path, headers={"Origin": "http://evil.example"})
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "[::1]:80", "localhost", "LocalHost:3480", "10.0.0.1"])
def test_a_numeric_address_and_localhost_are_this_server(admin: Asker, host: str) -> None:
    assert admin.ask("/health", headers={"Host": host})[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a:b:c", "[::1", "é"]
)
@pytest.mark.parametrize("path", ["/metrics", "/nothing"])
def test_any_other_name_is_not(admin: Asker, host: str, path: str) -> None:
    status, _, body = admin.ask(path, headers={"Host": host})
    assert status in (400, 421)
    assert b"skywalker_" not in body
    assert b"<html" not in body


def test_a_worker_that_hangs_is_shown_as_silent_and_holds_nobody_up(shared: tuple[Node, Asker]) -> None:
    found, asker = shared
    hung, _ = found.worker_pids()
    with stopped(hung):
        began = time.monotonic()
        assert asker.json("/api/topics")["silent"] == asker.json("/api/connections")["silent"]
        for path in ("/api/topics?order=rate", "/api/topics?limit=500", "/api/connections?order=age"):
            threading.Thread(target=asker.json, args=(path,)).start()
        answer = asker.json("/api/connections?order=waiting")
        assert time.monotonic() - began < 4 * time_factor()
        [slot] = answer["silent"]
        state = asker.once("/api/state", lambda it: it["workers"][slot]["beat_age"] > 2, within=10)
        assert state["workers"][slot]["pid"] == hung
        assert state["workers"][1 - slot]["beat_age"] < 2 * time_factor()
        assert asker.ask("/metrics")[0] == 200
    eventually(lambda: asker.json("/api/topics")["silent"] == [])
    eventually(lambda: asker.json("/api/connections")["silent"] == [])


def test_health_and_ready_are_503_while_no_worker_answers() -> None:
    with node(watchdog_s=60) as (found, asker):
        ok, error = b'{"status":"OK"}', b'{"status":"ERROR"}'
        assert asker.ask("/health")[::2] == asker.ask("/ready")[::2] == (200, ok)
        with stopped(found.worker_pids()[0]):
            assert asker.ask("/health")[::2] == asker.ask("/ready")[::2] == (503, error)
        assert eventually(lambda: asker.ask("/health")[0] == 200)


def test_a_node_that_drains_goes_on_telling_and_is_not_ready() -> None:
    # One that has greeted takes its calls elsewhere at once.
    with node(drain_timeout_s=30) as (found, asker), WireClient.open((found.host, found.port)) as client:
        client.call(":recv!", 1, 5000 * time_factor(), "waits")
        eventually(lambda: asker.json("/api/state")["waiting"]["recv"])
        os.kill(found.pid, signal.SIGTERM)
        eventually(lambda: asker.ask("/ready")[0] == 503)
        state = asker.once("/api/state", lambda it: it["node"]["draining"])
        assert not state["node"]["ready"]
        [worker] = asker.once("/api/state", lambda it: it["workers"][0]["state"] == "draining")["workers"]
        assert not worker["serving"]
        assert (asker.metric("skywalker_draining"), asker.metric("skywalker_ready")) == (1, 0)
        assert asker.json("/api/topics")["topics"][0]["topic"] == "waits"
        with asker.events() as events:
            next(events)
            os.kill(found.pid, signal.SIGTERM)
            for _ in events:
                pass  # it ends with the node


def test_nothing_that_is_told_or_logged_or_kept_holds_a_value(tmp_path: Path) -> None:
    """Values are for their receivers: neither who may see the metrics, nor who reads the files, gets them."""
    value = "the-value-that-nobody-else-gets"
    file = tmp_path / "node.toml"
    file.write_text('[access.somebody-of-note]\nnetwork = "127.0.0.0/8"\nadmin = true\nsend = ["*"]\nrecv = ["*"]\n')
    journal = tmp_path / "journal"
    with (
        node(workers=1, config_file=file, journal=str(journal)) as (found, asker),
        found.connect(name="the-client") as client,
        WireClient.open((found.host, found.port)) as waits,
    ):
        waits.call(":send!", 1, 60_000, "waits", value)
        receiving = threading.Thread(target=lambda: client.recv("met"))
        receiving.start()
        client.send("met", value)
        receiving.join()
        waits.wait_until("waits", senders=1)
        told = {path: asker.ask(path)[2] for path in (*PATHS, "/api/history")}
    assert b"the-client" in told["/api/connections"]
    told["the log"] = found.log.encode()
    kept = {str(path): path.read_bytes() for path in journal.rglob("*") if path.is_file()}
    assert any(b"met" in content for content in kept.values())
    for where, content in (told | kept).items():
        assert value.encode() not in content, where
    for where, content in kept.items():
        assert not any(each in content for each in (b"somebody-of-note", b"the-client")), where
        assert where.endswith(".ring") or b"127.0.0.1" not in content, where  # a ring has those of nodes
