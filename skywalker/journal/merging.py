"""The records of several files in the order of their time.

A file is in order but for what one turn of its writer's loop answered, and so is what comes of
them; that much of each file is held at a time as is read of it at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from skywalker.journal.reading import ALL, RECORD, Int64s, Records, Segment, Selection, joined, unix_ns

CHUNK_RECORDS: Final = 8192

Gone = Callable[[Segment], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """Records in order, each with its Unix time in ns and the file that it is from."""

    records: Records
    times: Int64s
    segments: list[Segment]
    origins: Int64s  # indices of `segments`

    def head(self, count: int) -> Run:
        """Return the first `count` records, or all if there are fewer."""
        return self._slice(slice(count))

    def parts(self, count: int) -> Iterator[Run]:
        """Yield all records, `count` at a time."""
        return (self._slice(slice(at, at + count)) for at in range(0, len(self.times), count))

    def _slice(self, which: slice) -> Run:
        return Run(self.records[which], self.times[which], self.segments, self.origins[which])


class _Cursor:
    """A file that is being read."""

    def __init__(self, segment: Segment, first: int, gone: Gone) -> None:
        self.segment = segment
        self._chunks = segment.chunks(first, CHUNK_RECORDS)
        self._gone = gone
        self.records: Records = np.empty(0, RECORD)
        self.times: Int64s = np.empty(0, np.int64)

    def fill(self) -> bool:
        """Read on, if nothing is left of what was read; return whether there is something."""
        while not len(self.records):
            try:
                chunk = next(self._chunks, None)
            except FileNotFoundError:
                self._gone(self.segment)
                return False
            if chunk is None:
                return False
            self.records, self.times = chunk, unix_ns(chunk, self.segment.header)
        return True

    def take(self, until: int) -> Records:
        """Return what was read that is no later."""
        now = self.times <= until
        taken = self.records.compress(now)
        self.records, self.times = self.records.compress(~now), self.times[~now]
        return taken


def merged(
    segments: Iterable[Segment], firsts: Mapping[str, int], gone: Gone, selection: Selection = ALL
) -> Iterator[Run]:
    """Yield the records of files that belong to a selection, from those on that `firsts` has by the files' keys.

    `gone` is told of each file that is deleted before it is read. Raises OSError.
    """
    begun = [_Cursor(segment, firsts.get(segment.key, 0), gone) for segment in segments]
    waiting = sorted(((_begins(cursor.segment, firsts), n) for n, cursor in enumerate(begun)), reverse=True)
    cursors: list[_Cursor] = []
    while waiting or cursors:
        cursors = [cursor for cursor in cursors if cursor.fill()]
        # As far as all that have begun are known, whoever begins until then has begun as well.
        until = min((int(cursor.times.max()) for cursor in cursors), default=None)
        if waiting and (until is None or waiting[-1][0] <= until):
            cursors.append(begun[waiting.pop()[1]])
        elif until is not None:
            yield from _run(cursors, until, selection)


def _begins(segment: Segment, firsts: Mapping[str, int]) -> int:
    """Return the time of the first record that is wanted of a file; 0 if there is none."""
    try:
        head = segment.read(firsts.get(segment.key, 0), 1)
    except FileNotFoundError:
        return 0
    return int(unix_ns(head, segment.header)[0]) if len(head) else 0


def _run(cursors: list[_Cursor], until: int, selection: Selection) -> Iterator[Run]:
    records, times, origins = [], [], []
    for number, cursor in enumerate(cursors):
        found = selection.of(cursor.take(until), cursor.segment.header)
        records.append(found)
        times.append(unix_ns(found, cursor.segment.header))
        origins.append(np.full(len(found), number, dtype=np.int64))
    all_times = np.concatenate(times)
    if len(all_times):
        order = np.argsort(all_times, kind="stable")
        segments = [cursor.segment for cursor in cursors]
        yield Run(joined(records).take(order), all_times[order], segments, np.concatenate(origins)[order])
