"""All metrics of workers/stats/metrics.py in the formats of Prometheus and of OpenMetrics: the body of /metrics."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from skywalker.errors import Forbidden, Unauthorized
from workers.agent.admin.samples import Samples
from workers.agent.admin.view import View
from workers.stats import metrics
from workers.stats.metrics import BUCKETS, Cells, Kind, Metric
from workers.stats.shared import Reading, SharedCounters

FIRST_BOUND: Final = 4
"""The shortest time that has a bound of its own is 2 ** 4 µs: what is below takes as long as to look at the clock."""

BOUNDS: Final = tuple((at, repr(2.0**at / 1e6)) for at in range(FIRST_BOUND, BUCKETS - 1))
"""Buckets of its histograms, and below how many seconds their times are; the last, which has the rest, has no bound."""

FRESH_S: Final = 0.2
"""Seconds for which a body that was costly is given to all who ask."""

COSTLY_S: Final = 0.002
"""Seconds that a body takes to be made from which on it is costly."""

MERGED: Final = (metrics.WAIT, metrics.HAND_OFF)
"""Histograms that are shown for all workers together: there are too many buckets to show each worker's."""

OPEN: Final = "application/openmetrics-text"


class Exposition(Collector):
    """Made anew for each scrape, or a few times a second."""

    def __init__(self, shared: SharedCounters, view: View, samples: Samples, refused: Mapping[str, int]) -> None:
        """`refused` says how many were refused, by the code of the error."""
        self._shared = shared
        self._view = view
        self._samples = samples
        self._refused = refused
        self._made: dict[bool, tuple[float, bytes]] = {}  # until when each format's body is fresh, and the body

    def body(self, accept: str) -> tuple[bytes, str]:
        """Return what a scrape gets, and its content type, by the Accept header."""
        is_open = OPEN in accept
        encode, content_type = choose_encoder(f"{OPEN};version=1.0.0" if is_open else "")
        began = time.monotonic()
        fresh_until, body = self._made.get(is_open, (0.0, b""))
        if began >= fresh_until:
            body = encode(self)
            now = time.monotonic()
            self._made[is_open] = now + FRESH_S if now - began > COSTLY_S else 0.0, body
        return body, content_type

    def collect(self) -> Iterator[Family]:
        """Yield all metrics."""
        reading = self._shared.read()
        slots = [reading.slot(number) for number in range(reading.slots)]
        for metric in metrics.WORKER_METRICS:
            if metric in MERGED:
                yield _family(metric, [((), list(map(sum, zip(*slots, strict=True))))])
            else:
                yield _family(metric, [((str(slot),), cells) for slot, cells in enumerate(slots)], "worker")
        for metric in metrics.NODE_METRICS:
            if metric is not metrics.STARTED:
                yield _family(metric, [((), reading.node)])
        yield GaugeMetricFamily(
            "skywalker_started", "When the node was started, in Unix seconds", reading.node[metrics.STARTED.at] / 1e6
        )
        yield from self._of_view(reading)
        yield from self._of_processes()
        refused = {code: self._refused.get(code, 0) for code in (Unauthorized.code, Forbidden.code)}
        about = "Requests to the admin server of those who may not see it"
        yield _labelled(CounterMetricFamily, "skywalker_admin_refused", about, "code", refused)

    def _of_view(self, reading: Reading) -> Iterator[Family]:
        view = self._view
        about = {
            "version": view.version,
            "node": view.me.id,
            "name": view.me.name,
        }
        yield InfoMetricFamily("skywalker", "What this node is", about)
        yield InfoMetricFamily("skywalker_ring", "The ring that this node follows", {"version": view.snapshot.version})
        yield GaugeMetricFamily("skywalker_ring_nodes", "Nodes on that ring", len(view.snapshot))
        unproven = dict.fromkeys(map(str, view.snapshot.unproven), 1)
        where = "Addresses where nobody has proved to be a node of this cluster"
        yield _labelled(GaugeMetricFamily, "skywalker_ring_unproven", where, "address", unproven)
        yield GaugeMetricFamily("skywalker_ring_share", "Part of the ring that is this node's, 1 is all", view.share)
        yield GaugeMetricFamily("skywalker_draining", "Whether the node drains", int(view.draining))
        yield GaugeMetricFamily(
            "skywalker_ready", "Whether the node is ready for clients", int(view.is_ready(reading.live()))
        )

    def _of_processes(self) -> Iterator[Family]:
        # Not of those that have ended: the next agent would not know of them, and this must not fall by what they had.
        cpu, resident, files = defaultdict[str, float](float), Counter[str](), Counter[str]()
        open_files = self._samples.open_files()
        for usage in self._samples.latest.processes:
            cpu[usage.name] += usage.cpu_s
            resident[usage.name] += usage.rss
            files[usage.name] += open_files.get(usage.pid, 0)
        what = "CPU time of a process, anew with each that takes its place"
        yield _labelled(CounterMetricFamily, "skywalker_process_cpu_seconds", what, "process", cpu)
        what = "Memory that a process has resident"
        yield _labelled(GaugeMetricFamily, "skywalker_process_resident_bytes", what, "process", resident)
        what = "Descriptors that a process has open"
        yield _labelled(GaugeMetricFamily, "skywalker_process_open_files", what, "process", files)


def _labelled(
    made: type[CounterMetricFamily | GaugeMetricFamily], name: str, help: str, label: str, values: Mapping[str, float]
) -> Family:
    """Return a metric of one label with its values."""
    family = made(name, help, labels=(label,))
    for each, value in values.items():
        family.add_metric((each,), value)
    return family


def _family(metric: Metric, parts: Sequence[tuple[tuple[str, ...], Cells]], *further_names: str) -> Family:
    """Return a metric with its labels, of each of the parts that has further labels and cells of its own."""
    name = f"skywalker_{metric.name}"
    names = (*(label for label, _ in metric.labels), *further_names)
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, metric.help, labels=names)
        for further, cells in parts:
            for labels, row in metric.rows(cells):
                histogram.add_metric((*labels, *further), _buckets(row), row[BUCKETS] / 1e6)
        return histogram
    made = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = made(name, metric.help, labels=names)
    for further, cells in parts:
        for labels, (value,) in metric.rows(cells):
            family.add_metric((*labels, *further), value / 1e6 if name.endswith("_seconds") else value)
    return family


def _buckets(row: Cells) -> list[tuple[str, float]]:
    """Return the buckets of a histogram as Prometheus has them: each with all that is below its bound."""
    found: list[tuple[str, float]] = []
    below = sum(row[:FIRST_BOUND])
    for at, bound in BOUNDS:
        below += row[at]
        found.append((bound, below))
    return [*found, ("+Inf", sum(row[:BUCKETS]))]
