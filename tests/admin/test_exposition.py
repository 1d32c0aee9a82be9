"""What Prometheus gets: well-formed, true, and never going backwards."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import threading
import time
from collections import defaultdict

import skywalker
from tests.admin.asking import OPEN, Asker, agent_of, node
from tests.helpers import eventually, time_factor
from workers.stats import metrics
from workers.stats.metrics import Kind

UNITS = ("milliseconds", "microseconds", "minutes", "hours", "kilobytes", "megabytes", "kibibytes", "percent", "ms")


def lint(text: str) -> list[str]:
    """Return what promtool would find wrong."""
    problems = []
    kinds: dict[str, str] = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    helps: dict[str, str] = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    assert len(re.findall(r"^# TYPE", text, re.M)) == len(kinds), "a metric is there twice"
    series = set()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'([a-z_:]+)(\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)', line)
        assert match, line
        name, labels = match[1], dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[3] or ""))
        if (name, *sorted(labels.items())) in series:
            problems.append(f"{line} is there twice")
        series.add((name, *sorted(labels.items())))
        base = re.sub(r"_(bucket|sum|count)$", "", name) if name not in kinds else name
        if base not in kinds or not helps.get(base):
            problems.append(f"{name} has no type, or no help")
            continue
        kind = kinds[base]
        if name.endswith("_total") != (kind == "counter"):
            problems.append(f"{name} is a {kind}")
        if name.endswith("_bucket") != ("le" in labels) or "quantile" in labels:
            problems.append(f"{line} has labels of another kind")
        if any(word in base.split("_") for word in (*UNITS, "counter", "gauge", "histogram")):
            problems.append(f"{name} is not in a base unit, or names its type")
        if float(match[4]) < 0:
            problems.append(f"{line} is negative")
    return problems


def test_all_metrics_are_there_and_pass_the_lint() -> None:
    with node(workers=2, name='a"b\\c') as (found, asker), found.connect() as client:
        client.send("nobody", 1, timeout=0, default=None)
        status, headers, body = asker.ask("/metrics")
        assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert lint(body.decode()) == []
        names = {name for name, _ in asker.metrics()}
        for metric in (*metrics.WORKER_METRICS, *metrics.NODE_METRICS):
            suffix = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.HISTOGRAM: "_bucket"}[metric.kind]
            assert f"skywalker_{metric.name}{suffix}" in names
        assert asker.metric("skywalker_info", name='a"b\\c', version=skywalker.__version__) == 1
        assert asker.metric("skywalker_ring_nodes") == asker.metric("skywalker_ring_share") == 1
        assert (asker.metric("skywalker_ready"), asker.metric("skywalker_draining")) == (1, 0)
        assert asker.metric("skywalker_workers_serving") == 2
        assert abs(asker.metric("skywalker_started") - time.time()) < 60 * time_factor()
        for process in ("supervisor", "agent", "worker-0", "worker-1"):
            assert asker.metric("skywalker_process_resident_bytes", process=process) > 2**20
            assert asker.metric("skywalker_process_open_files", process=process) > 3
            assert asker.metric("skywalker_process_cpu_seconds_total", process=process) >= 0


def test_both_formats_say_the_same_and_other_wishes_get_plain_text(admin: Asker) -> None:
    _, headers, body = admin.ask("/metrics", headers={"Accept": OPEN})
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    plain, opened = admin.metrics(), admin.metrics(OPEN)
    assert {name.removesuffix("_info") for name, _ in plain} == {name.removesuffix("_info") for name, _ in opened}
    assert plain.keys() == opened.keys()
    for accept in ("*/*", "text/plain;version=1.0.0", "application/json", "text/plain;version=bad;q=x", ";;,,="):
        status, headers, _ = admin.ask("/metrics", headers={"Accept": accept})
        assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert admin.ask("/metrics", headers={"Accept": "application/openmetrics-text;version=bad"})[0] == 200


def test_buckets_hold_all_below_their_bound_and_the_last_one_everything() -> None:
    with node(workers=2) as (found, asker), found.connect() as client:
        receiving = threading.Thread(target=lambda: [client.recv("met") for _ in range(100)])
        receiving.start()
        for number in range(100):
            client.send("met", number)
        receiving.join()
        eventually(lambda: asker.metric("skywalker_calls_total") >= 200)
        buckets: defaultdict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = defaultdict(list)
        series = asker.metrics()
        for (name, labels), value in series.items():
            if name.endswith("_bucket"):
                rest = tuple(label for label in labels if label[0] != "le")
                buckets[name.removesuffix("_bucket"), rest].append((float(dict(labels)["le"]), value))
        assert {name for name, _ in buckets} == {
            f"skywalker_{metric.name}" for metric in metrics.WORKER_METRICS if metric.kind is Kind.HISTOGRAM
        }
        for (name, labels), found_buckets in buckets.items():
            ordered = [value for _, value in sorted(found_buckets)]
            assert ordered == sorted(ordered)
            assert min(found_buckets)[0] == 16e-6
            assert max(found_buckets) == (float("inf"), series[f"{name}_count", labels])
            assert (series[f"{name}_sum", labels] > 0) <= (ordered[-1] > 0)
        times = sum(value for (name, _), value in series.items() if name == "skywalker_hand_off_seconds_count")
        times += sum(value for (name, _), value in series.items() if name == "skywalker_wait_seconds_count")
        # Where another worker owns the topic, a call that was prompt there is counted as one that waited.
        assert times == 200


def restarts(asker: Asker) -> float:
    """Return how many workers and agents that were killed have been replaced."""
    workers = asker.metric("skywalker_worker_restarts_total", cause="signal")
    return workers + asker.metric("skywalker_agent_restarts_total")


def test_no_counter_goes_backwards_while_workers_and_agents_are_killed_under_load() -> None:
    with node(workers=2) as (found, asker):
        over = threading.Event()
        scrapes = []

        def call(number: int) -> None:
            with found.connect() as client:
                while not over.is_set():
                    with contextlib.suppress(skywalker.SkywalkerError):
                        client.send(("load", number), 1, timeout=0.01, default=None)

        def scrape() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):  # it may be killed as it answers
                    scrapes.append(asker.metrics())

        threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
        threads.append(threading.Thread(target=scrape))
        for each in threads:
            each.start()
        try:
            eventually(lambda: asker.metric("skywalker_calls_total") > 20)
            for number in range(4):
                count, before = len(scrapes), restarts(asker)
                os.kill(agent_of(found) if number == 2 else found.worker_pids()[number % 2], signal.SIGKILL)
                eventually(lambda: len(scrapes) > count + 10, within=20)  # noqa: B023
                eventually(lambda: restarts(asker) == before + 1, within=20)  # noqa: B023
                eventually(lambda: asker.metric("skywalker_workers_serving") == 2, within=20)
        finally:
            over.set()
            for each in threads:
                each.join()
        highest: dict[object, float] = {}
        for series in scrapes:
            for key, value in series.items():
                name, labels = key
                if not name.endswith(("_total", "_bucket", "_sum", "_count")) or ("process", "agent") in labels:
                    continue
                if name == "skywalker_process_cpu_seconds_total":
                    continue
                assert value >= highest.get(key, 0), key
                highest[key] = value
        assert len(scrapes) > 40
        assert asker.metric("skywalker_worker_restarts_total", cause="signal") == 3
        assert asker.metric("skywalker_agent_restarts_total") == 1
        assert asker.metric("skywalker_connections") <= 4 + 4  # those of the dead are not counted any more


def test_no_cpu_time_goes_with_an_agent_that_has_seen_workers_end() -> None:
    with node() as (found, asker), found.connect() as client:

        def used() -> float:
            return asker.metric("skywalker_process_cpu_seconds_total", process="worker-0")

        def are_known(pids: list[int]) -> bool:
            return set(pids) <= {each["pid"] for each in asker.json("/api/state")["processes"]}

        while used() < 0.3:
            for _ in range(100):
                client.send("nobody", 1, timeout=0, default=None)
        os.kill(found.worker_pids()[0], signal.SIGKILL)
        eventually(lambda: restarts(asker) == 1)
        eventually(lambda: len(found.worker_pids()) == 1 and are_known(found.worker_pids()))
        before, agent = used(), agent_of(found)
        os.kill(agent, signal.SIGKILL)
        eventually(lambda: agent_of(found) not in (0, agent))
        eventually(lambda: are_known(found.worker_pids()))
        assert used() >= before
