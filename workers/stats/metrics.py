"""What a node counts of itself: every metric, and in which cells of the shared memory it stands.

A cell is a signed 64-bit number. A worker adds to those of its own part of the memory, see
shared.py; what reads them, metrics and the console, is made from the tables here.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

from skywalker import errors
from skywalker.journal.record import DOORS, METHODS, OUTCOMES, ROUTES
from skywalker.limits import Limits
from workers.stats.close_reasons import Close

BUCKETS: Final = 38
"""Cells of a histogram before its sum: bucket k counts times below 2**k µs, and not below half of that. The last one,
from 38 hours on, takes all that is longer."""

HISTOGRAM_CELLS: Final = BUCKETS + 1

Cells = Sequence[int]
"""Those of a part of the memory, or of a histogram."""


class Kind(enum.Enum):
    """How a metric changes."""

    COUNTER = "counter"  # it only grows, and outlives the worker that counted it
    GAUGE = "gauge"  # how it is now; gone with its worker. Of seconds it is µs in the cell
    HISTOGRAM = "histogram"  # of times: BUCKETS counters, and their sum in µs


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """One metric for each combination of its labels' values, in cells that follow each other from `at` on."""

    at: int
    name: str
    help: str
    kind: Kind
    labels: tuple[tuple[str, tuple[str, ...]], ...]  # names and values; the last one changes from cell to cell

    @property
    def width(self) -> int:
        """Cells of one combination."""
        return HISTOGRAM_CELLS if self.kind is Kind.HISTOGRAM else 1

    @property
    def end(self) -> int:
        """The first cell after it."""
        return self.at + self.width * math.prod(len(values) for _, values in self.labels)

    def cell(self, *values: str) -> int:
        """Return the first cell of one combination of its labels' values."""
        number = 0
        for (_, all_values), value in zip(self.labels, values, strict=True):
            number = number * len(all_values) + all_values.index(value)
        return self.at + number * self.width

    def rows(self, cells: Cells) -> Iterator[tuple[tuple[str, ...], Cells]]:
        """Yield the values of the labels and the cells of each combination, but for those of `unknown`."""
        combinations = product(*(values for _, values in self.labels))
        for number, combination in enumerate(combinations):
            if UNKNOWN not in combination:
                at = self.at + number * self.width
                yield combination, cells[at : at + self.width]

    def by_label(self, cells: Cells) -> dict[str, Any]:
        """Return the numbers of a counter or gauge by the values of its label; of two labels, one within the other."""
        assert self.labels
        assert self.width == 1
        found: dict[str, Any] = {}
        for (first, *rest), (number,) in self.rows(cells):
            if rest:
                found.setdefault(first, {})[rest[0]] = number
            else:
                found[first] = number
        return found

    def total(self, cells: Cells) -> int:
        """Return the sum of a counter or gauge over all its labels."""
        assert self.width == 1
        return sum(cells[self.at : self.end])

    def merged(self, cells: Cells) -> Cells:
        """Return a histogram, added up over its labels."""
        assert self.kind is Kind.HISTOGRAM
        return [sum(column) for column in zip(*(row for _, row in self.rows(cells)), strict=True)]


UNKNOWN: Final = "unknown"

CLOSES: Final = tuple(reason.label for reason in Close)
"""Why a connection was closed."""

KINDS: Final = ("send", "recv", "take", "subscription")
"""Who waits on a topic."""

LIMITS: Final = tuple(field.name for field in dataclasses.fields(Limits))

CODES: Final = tuple(sorted(errors.BY_CODE))

RESTARTS: Final = ("ended", "status", "signal", "hung", "reload")
"""Why a worker was replaced: it drained alone; it ended with a status that is not 0, or by a signal; its loop did not
turn; its node was reloaded."""


STATES: Final = ("starting", "serving", "draining", "idle", "stopping", "gone")
"""Where a worker may be in its life: slot.py of process says what each means."""


class _Table:
    """Gives each metric the cells after those of the one before."""

    def __init__(self, first: int) -> None:
        self.metrics: list[Metric] = []
        self.end = first

    def add(self, name: str, kind: Kind, help: str, /, **labels: tuple[str, ...]) -> Metric:
        metric = Metric(self.end, name, help, kind, tuple(labels.items()))
        self.metrics.append(metric)
        self.end = metric.end
        return metric


# The first cells of a worker's part say whose it is.
SLOT: Final = 0
PID: Final = 1
BEAT: Final = 2
"""When its loop turned last, in µs of the monotonic clock; 0 until it does."""

STATE: Final = 3
"""Where it is in its life, as its supervisor sees it: the place of that in STATES."""

_worker: Final = _Table(4)
_add = _worker.add

CALLS: Final = _add("calls", Kind.COUNTER, "Calls answered", method=METHODS, outcome=OUTCOMES)
ROUTED: Final = _add("calls_routed", Kind.COUNTER, "Calls answered, by where their topic is owned", route=ROUTES)
WAIT: Final = _add("wait_seconds", Kind.HISTOGRAM, "Time that calls waited which met their partner", method=METHODS)
HAND_OFF: Final = _add(
    "hand_off_seconds",
    Kind.HISTOGRAM,
    "Time from a call whose partner was there to its answer, where its own worker owns the topic",
)
TURN: Final = _add("turn_seconds", Kind.HISTOGRAM, "Time that turns of the loop took, waiting not counted")
RECEIVED: Final = _add("received_bytes", Kind.COUNTER, "Bytes read from clients", door=DOORS)
SENT: Final = _add("sent_bytes", Kind.COUNTER, "Bytes written to clients", door=DOORS)
HANDSHAKES: Final = _add("handshakes_failed", Kind.COUNTER, "Connections that were to speak TLS, and never did")
OPENED: Final = _add("connections_opened", Kind.COUNTER, "Connections accepted", door=DOORS)
CLOSED: Final = _add("connections_closed", Kind.COUNTER, "Connections closed", reason=CLOSES)
MOVED: Final = _add(
    "connections_moved",
    Kind.COUNTER,
    "Connections that went to the worker of their topics, came from another one, or were not taken by it",
    way=("out", "in", "refused"),
)
REFUSED: Final = _add("errors", Kind.COUNTER, "Calls and frames that were refused", code=CODES)
LIMITED: Final = _add("limits_hit", Kind.COUNTER, "What a limit refused or ended", limit=LIMITS)

CONNECTIONS: Final = _add("connections", Kind.GAUGE, "Connections that are open", door=DOORS)
WAITING: Final = _add("waiting", Kind.GAUGE, "Calls of this worker's clients that wait, and subscriptions", kind=KINDS)
HELD_BYTES: Final = _add("held_bytes", Kind.GAUGE, "Memory counted for calls that wait and for subscriptions")
TOPICS: Final = _add("topics", Kind.GAUGE, "Topics owned here on which somebody waits")
UNREAD: Final = _add("unread_bytes", Kind.GAUGE, "Output that clients have not read")
CHOKED: Final = _add(
    "choked_connections", Kind.GAUGE, "Connections whose client does not read as fast as it is written to"
)
LONGEST_TURN: Final = _add(
    "longest_turn_seconds", Kind.GAUGE, "CPU time of the longest turn of the loop in the last 5 to 10 s"
)
LINKS: Final = _add(
    "links",
    Kind.GAUGE,
    "Links to workers of other nodes: by a connection, over those of siblings, and what is so of siblings' here",
    way=("connected", "relayed", "passing"),
)
UNSENT: Final = _add("unsent_bytes", Kind.GAUGE, "What is queued for other workers", to=("siblings", "nodes"))

WORKER_METRICS: Final = tuple(_worker.metrics)
WORKER_CELLS: Final = _worker.end

AGENT_BEAT: Final = 0
"""In the node's part: when the loop of its agent turned last, in µs of the monotonic clock."""

_node: Final = _Table(1)
_add = _node.add

STARTED: Final = _add("started", Kind.GAUGE, "When the node was started, in Unix µs")
SERVING: Final = _add("workers_serving", Kind.GAUGE, "Workers that serve")
RESTARTED: Final = _add("worker_restarts", Kind.COUNTER, "Workers that were replaced", cause=RESTARTS)
AGENT_RESTARTED: Final = _add("agent_restarts", Kind.COUNTER, "Agents that were replaced")
RELOADED: Final = _add("reloads", Kind.COUNTER, "Reloads that were asked for", result=("done", "refused", "failed"))

NODE_METRICS: Final = tuple(_node.metrics)
NODE_CELLS: Final = _node.end


def grown(newer: Cells, older: Cells) -> Cells:
    """Return what was counted between two readings."""
    return [new - old for new, old in zip(newer, older, strict=True)]


def quantile(buckets: Cells, q: float) -> float | None:
    """Return the time, in seconds, below which the part `q` of what a histogram counted lies; None if it is empty.

    Within a bucket, times are taken to be spread evenly.
    """
    assert 0 <= q <= 1
    total = sum(buckets[:BUCKETS])
    if not total:
        return None
    rank = q * total
    for number, count in enumerate(buckets[:BUCKETS]):
        if count and rank <= count:
            low = 0.0 if not number else 2.0 ** (number - 1)
            return (low + (2.0**number - low) * rank / count) / 1e6
        rank -= count
    raise AssertionError("the counts add up to their sum")


def quantiles(newer: Cells, older: Cells) -> dict[str, float | None]:
    """Return the median and the 99th percentile, in s, of what a histogram counted between two readings."""
    counted = grown(newer, older)
    return {"p50": quantile(counted, 0.5), "p99": quantile(counted, 0.99)}
