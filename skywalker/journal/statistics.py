"""What a journal says in figures: how many calls, how they ended, how long they waited, on which topics.

Every record counts as many times as its file says that it stands for. Counts are exact; a wait is known to a
thousandth of itself, which lets any number of them fit in a few MiB.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from skywalker.journal.header import Header, Origin
from skywalker.journal.reading import KINDS, Int64s, Records, kinds, unix_ns

PERCENTS: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

_FINE_BITS: Final = 10
"""Bits of a float's mantissa that are kept: neighbours differ by a thousandth."""

_DROPPED_BITS: Final = 23 - _FINE_BITS
_BUCKETS: Final = int(np.array(1e9, dtype=np.float32).view(np.uint32)) >> _DROPPED_BITS
"""The bucket of all waits of 30 years and more, and of what is no number."""

_LEAST: Final = int(np.array(1e-9, dtype=np.float32).view(np.uint32)) >> _DROPPED_BITS
"""The bucket of all waits of a nanosecond and less."""

_MANY_TOPICS: Final = 1 << 20
"""Tokens that are gathered before they are counted: a sort of many is cheaper than many of few."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """How long calls waited."""

    calls: int
    seconds: Mapping[float, float]  # by percent


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """The figures of some records."""

    records: int
    dropped: int  # records that are missing, since the disk did not take them
    moved: int  # connections that went from one worker to another
    calls: int  # that they stand for
    first_ns: int  # Unix time of the first answer, and of the last
    last_ns: int
    size: int  # bytes of all values
    waits: Mapping[str, Mapping[str, Waits]]  # by method and outcome
    routes: Mapping[str, int]
    doors: Mapping[str, int]
    workers: Mapping[Origin, int]
    topics: int  # different ones
    top: Sequence[tuple[int, int]]  # tokens and calls, the most first

    @property
    def span_s(self) -> float:
        """Seconds from the first answer to the last."""
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def rate(self) -> float | None:
        """Calls a second; None if all were answered at one time."""
        return self.calls / self.span_s if self.span_s > 0 else None


class Statistics:
    """Counts records, file by file."""

    def __init__(self) -> None:
        self._records = 0
        self._dropped = 0
        self._moved = 0
        self._first: int | None = None
        self._last = 0
        self._size = 0
        self._counts = {field: np.zeros(len(words), dtype=np.int64) for field, words in KINDS.items()}
        self._waits: dict[tuple[int, int], Int64s] = {}  # by method and outcome, how many in each bucket
        self._workers: dict[Origin, int] = {}
        self._topics = _Topics()

    def begin(self, header: Header) -> None:
        """Count what the header of a file says."""
        self._dropped += header.dropped
        self._moved += header.moved

    def add(self, records: Records, header: Header) -> None:
        """Count some records of one file."""
        if not len(records):
            return
        times = unix_ns(records, header)
        first, last = int(times.min()), int(times.max())
        self._first, self._last = (
            (first, last) if self._first is None else (min(self._first, first), max(self._last, last))
        )
        self._records += len(records)
        self._size += int(records["size"].sum(dtype=np.int64)) * header.sample
        who = header.origin
        self._workers[who] = self._workers.get(who, 0) + len(records) * header.sample
        for field, words in KINDS.items():
            self._counts[field] += np.bincount(kinds(records, field), minlength=len(words)) * header.sample
        self._topics.add(records["token"], header.sample)
        self._add_waits(records, header.sample)

    def _add_waits(self, records: Records, sample: int) -> None:
        methods, outcomes = kinds(records, "method"), kinds(records, "outcome")
        buckets = np.maximum(records["wait"], 0).astype(np.float32).view(np.uint32) >> _DROPPED_BITS
        # A damaged record may have no number at all.
        buckets = np.clip(buckets, _LEAST, _BUCKETS) - _LEAST
        for end in np.unique(methods.astype(np.uint16) << 8 | outcomes).tolist():
            method, outcome = divmod(end, 256)
            its_own = (methods == method) & (outcomes == outcome)
            counts = np.bincount(buckets[its_own], minlength=_BUCKETS - _LEAST + 1) * sample
            known = self._waits.get((method, outcome))
            self._waits[method, outcome] = counts if known is None else known + counts

    def summary(self, top: int = 10) -> Summary:
        """Return what was counted until now, with so many of the topics."""
        waits: dict[str, dict[str, Waits]] = {}
        for (method, outcome), counts in sorted(self._waits.items()):
            waits.setdefault(KINDS["method"][method], {})[KINDS["outcome"][outcome]] = _percentiles(counts)
        return Summary(
            records=self._records,
            dropped=self._dropped,
            moved=self._moved,
            calls=int(self._counts["method"].sum()),
            first_ns=self._first or 0,
            last_ns=self._last,
            size=self._size,
            waits=waits,
            routes=self._by_word("route"),
            doors=self._by_word("door"),
            workers=dict(sorted(self._workers.items())),
            topics=len(self._topics),
            top=self._topics.top(top),
        )

    def _by_word(self, field: str) -> dict[str, int]:
        counts = self._counts[field].tolist()
        return {word: count for word, count in zip(KINDS[field], counts, strict=True) if count}


class _Topics:
    """Counts tokens exactly: 16 bytes for each different one."""

    def __init__(self) -> None:
        self._tokens = np.empty(0, dtype=np.int64)
        self._calls = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Int64s, int]] = []
        self._many = 0

    def __len__(self) -> int:
        self._count()
        return len(self._tokens)

    def add(self, tokens: Int64s, sample: int) -> None:
        self._waiting.append((tokens.copy(), sample))
        self._many += len(tokens)
        if self._many >= max(_MANY_TOPICS, len(self._tokens)):
            self._count()

    def top(self, count: int) -> list[tuple[int, int]]:
        """Return tokens and their calls, the most first, and of equals the least token."""
        self._count()
        order = np.lexsort((self._tokens, -self._calls))[:count]
        return [*zip(self._tokens[order].tolist(), self._calls[order].tolist(), strict=True)]

    def _count(self) -> None:
        parts = [(self._tokens, self._calls)]
        for tokens, sample in self._waiting:
            found, counts = np.unique(tokens, return_counts=True)
            parts.append((found, counts * sample))
        self._waiting.clear()
        self._many = 0
        if len(parts) > 1:
            self._tokens, where = np.unique(np.concatenate([tokens for tokens, _ in parts]), return_inverse=True)
            calls = np.concatenate([calls for _, calls in parts])
            self._calls = np.zeros(len(self._tokens), dtype=np.int64)
            np.add.at(self._calls, where, calls)


def _percentiles(counts: Int64s) -> Waits:
    calls = int(counts.sum())
    ranks = np.cumsum(counts)
    # The wait that so many percent of the calls did not exceed: of 10 calls, p90 is the ninth.
    wanted = [max(1, int(np.ceil(calls * percent / 100))) for percent in PERCENTS]
    return Waits(calls, dict(zip(PERCENTS, _seconds(np.searchsorted(ranks, wanted)).tolist(), strict=True)))


def _seconds(buckets: Int64s) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the middle of each bucket; 0 of the first."""
    low = ((buckets + _LEAST).astype(np.uint32) << np.uint32(_DROPPED_BITS)).view(np.float32)
    middle = low.astype(np.float64) * (1 + 0.5**_FINE_BITS / 2)
    return np.where(buckets == 0, 0.0, middle)
