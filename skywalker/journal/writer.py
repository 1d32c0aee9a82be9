"""Writes a journal in a thread of its own, since a disk may take its time and who makes the calls may not.

What the thread cannot keep up with, or has no room for, is dropped and counted. Nothing here waits
for the disk but that thread, and the end.
"""

from __future__ import annotations

import errno
import functools
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from skywalker import own_directory
from skywalker.journal import names, rings
from skywalker.journal.header import CALLS, NAMES, Header, Origin
from skywalker.journal.record import PAGE_BYTES, RECORD_BYTES
from skywalker.journal.segments import Segment, complete, now, prune, writer_of
from skywalker.journal.settings import JournalSettings
from skywalker.ring import version_of

MAX_PAGES: Final = 16
"""Pages that may wait for the disk, 16 MiB: half a second of the most calls that a worker can answer."""

END_S: Final = 2.0
"""Seconds for the disk to take the rest."""

TIDY_S: Final = 3600.0
"""Seconds after which a writer sees to the files of all, however little it has written since."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

Say = Callable[..., None]
"""What is told of events: a name and fields, as a Log's method takes them."""


class Writer:
    """One writer of a journal: a worker, or a process of the load generator."""

    def __init__(self, settings: JournalSettings, origin: Origin, warn: Say, info: Say) -> None:
        self._settings = settings
        self._origin = origin
        self._warn, self._info = warn, info
        self._ring = b""  # its members
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()  # for the thread
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._calls: Segment | None = None
        self._names: Segment | None = None
        self._last: Segment | None = None  # that was begun, of either
        self._rotate_at = 0.0
        self._tidy_at = 0.0
        self._untidied = 0  # bytes in files that are complete
        self._is_failing = False
        self._unwritten: list[bytes] = []  # names that the disk did not take
        self._handed_over = 0  # pages, counted by who has them
        self._taken = 0  # and by the thread
        # Records that were lost: counted by who has them, and by the thread.
        self._overrun = 0
        self._refused = 0
        self._told = 0  # of which it was said
        self._on_record = 0  # and of which a header says so
        self._moved = 0  # connections of which no header says so
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many records were lost, because the disk was too slow or would not take them."""
        return self._overrun + self._refused

    # What is asked of it, by the thread that has the records.

    def write(self, page: bytearray, count: int) -> bytearray:
        """Take a page with so many records; return another for the next ones. Never waits."""
        if self._handed_over - self._taken >= MAX_PAGES:
            self._overrun += count
            return page
        self._handed_over += 1
        self._waiting.put(functools.partial(self._take_page, page, count))
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return bytearray(PAGE_BYTES)

    def name(self, token: int, topic: bytes) -> None:
        """Have the topic of a token on record, in canonical MessagePack."""
        self._waiting.put(lambda: self._unwritten.append(names.pack(token, topic)))

    def moved(self) -> None:
        """Have it on record that a connection has come from another worker."""
        self._waiting.put(self._take_move)

    def follow(self, members: bytes) -> None:
        """What comes from now on was seen in the ring of these members, in MessagePack."""
        self._waiting.put(functools.partial(self._take_ring, members))

    def close(self) -> None:
        """Write the rest and end the segment, unless the disk takes too long for it."""
        self._waiting.put(None)
        self._thread.join(END_S)
        if self._thread.is_alive():
            self._warn(
                "journal-cut-short",
                directory=self._settings.directory,
                pages=self._handed_over - self._taken,
                hint=f"the disk did not take the last records within {END_S:g} s: give the journal a faster one",
            )

    # The thread.

    def _run(self) -> None:
        # They are for who has the work, and looks for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            own_directory.make(self._settings.directory, own_directory.SHARED)
            self._tidy()
        except OSError as error:
            self._failed(error)
        while True:
            try:
                item = self._waiting.get(timeout=self._patience())
            except queue.Empty:
                self._end_calls()
                continue
            if item is None:
                self._end()
                return
            item()
            # Not while the disk refuses: all of them would be put together anew for each.
            if self._unwritten and not self._is_failing:
                self._write_names()

    def _patience(self) -> float | None:
        if self._calls is None:
            return None
        return min(max(0.0, self._rotate_at - time.monotonic()), threading.TIMEOUT_MAX)

    def _take_move(self) -> None:
        self._moved += 1

    def _take_ring(self, members: bytes) -> None:
        self._end_calls()
        self._ring = members

    def _take_page(self, page: bytearray, count: int) -> None:
        self._write_page(page, count)
        self._taken += 1
        self._free.put(page)

    def _write_page(self, page: bytearray, count: int) -> None:
        if self._calls is not None and (
            self._calls.size >= self._settings.rotate_bytes or time.monotonic() >= self._rotate_at
        ):
            self._end_calls()
        written = 0
        try:
            if self._calls is None:
                self._calls = self._begin(CALLS)
                self._rotate_at = time.monotonic() + self._settings.rotate_s
                self._keep_ring(self._calls.opened)
            before = self._calls.size
            try:
                self._calls.write(memoryview(page)[: count * RECORD_BYTES], RECORD_BYTES)
            finally:
                written = (self._calls.size - before) // RECORD_BYTES
        except OSError as error:
            self._refused += count - written
            self._failed(error)
        else:
            self._succeeded()

    def _keep_ring(self, opened: int) -> None:
        if self._ring:
            writer = writer_of(self._origin.node, self._origin.worker)
            try:
                rings.keep(self._settings.directory, self._ring, writer, opened)
            except OSError as error:
                self._failed(error)  # records can be read without it

    def _write_names(self) -> None:
        try:
            if self._names is None:
                self._names = self._begin(NAMES)
            self._names.write(b"".join(self._unwritten))
        except OSError as error:
            self._failed(error)
        else:
            self._unwritten = []

    def _end_calls(self) -> None:
        segment, self._calls = self._calls, None
        if segment is not None:
            try:
                dropped = self.dropped - self._on_record
                self._on_record += dropped
                moved, self._moved = self._moved, 0
                segment.close(dropped, moved)
                self._untidied += segment.size
                if self._untidied >= self._settings.rotate_bytes or time.monotonic() >= self._tidy_at:
                    self._tidy()
            except OSError as error:
                self._failed(error)

    def _end(self) -> None:
        self._end_calls()
        if self._unwritten:
            self._write_names()  # the disk may have room again
        if self._names is not None:
            self._names.close()
        if self.dropped > self._told:
            self._warn("journal-ended", directory=self._settings.directory, dropped=self.dropped)

    def _tidy(self) -> None:
        """See to the files of all writers. To look at all of them takes long if there are many, so not each time."""
        complete(self._settings.directory)
        prune(self._settings.directory, self._settings.keep_bytes)
        self._tidy_at = time.monotonic() + TIDY_S
        self._untidied = 0

    def _begin(self, kind: str) -> Segment:
        self._last = Segment(self._settings.directory, self._header(kind), self._last)
        return self._last

    def _header(self, kind: str) -> Header:
        unix, clock = now()
        ring = version_of(self._ring) if self._ring else ""
        return Header(kind, *self._origin, ring, clock, unix, self._settings.sample)

    def _failed(self, error: OSError) -> None:
        """Say so, once until it goes on."""
        if not self._is_failing:
            self._is_failing = True
            hint = "make room, or keep less" if error.errno in _FULL else "see to it"
            self._warn(
                "journal-stopped",
                directory=self._settings.directory,
                reason=error.strerror or error,
                hint=f"records are dropped until it can be written again: {hint}",
            )

    def _succeeded(self) -> None:
        """Say what was lost, once it goes on and has caught up."""
        if (self._is_failing or self.dropped > self._told) and self._waiting.empty():
            self._info("journal-goes-on", directory=self._settings.directory, dropped=self.dropped)
            self._is_failing = False
            self._told = self.dropped
