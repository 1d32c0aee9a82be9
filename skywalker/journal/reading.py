"""A journal read again: which files there are, and their records as arrays of numpy, of one file or in order of many.

Only whole records are read, and a file that grows or is renamed meanwhile is read on. Nothing is mapped into memory,
where the end of a file that is cut would be the end of the process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from skywalker.errors import ConfigError, JournalError
from skywalker.journal import rings
from skywalker.journal.header import CALLS, HEADER_BYTES, MAGIC, NAMES, Header
from skywalker.journal.names import entries
from skywalker.journal.record import FIELDS, RECORD_BYTES, UNKNOWN, WORDS
from skywalker.journal.segments import OPEN, File, files, key_of
from skywalker.limits import MIB

RECORD: Final = np.dtype(
    {
        "names": [name for name, _, _ in FIELDS],
        "formats": [f"<{type}" for _, type, _ in FIELDS],
        "offsets": [offset for _, _, offset in FIELDS],
        "itemsize": RECORD_BYTES,
    }
)

_BYTES: Final = np.dtype((np.void, RECORD_BYTES))

Records: TypeAlias = npt.NDArray[np.void]
"""Of the type RECORD, one for each call. An index copies them field by field; take() and compress() copy them whole."""

Int64s: TypeAlias = npt.NDArray[np.int64]

MOST_MISSING: Final = 64 * MIB
"""Bytes that a file may have more than the disk has for it before one looks for a hole. Some disks compress."""

CHUNK_RECORDS: Final = 1 << 18
"""Records that are read at a time, 8 MiB: they are cheap by then, and stay in the cache of a processor."""

KINDS: Final = {field: tuple(dict.fromkeys((*words, UNKNOWN))) for field, words in WORDS.items()}
"""By field, all words that its codes can stand for."""

_KIND_OF_CODE: Final = {
    field: np.array(
        [KINDS[field].index(words[code] if code < len(words) else UNKNOWN) for code in range(256)], dtype=np.uint8
    )
    for field, words in WORDS.items()
}


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A file with records, as it was when it was looked at."""

    path: Path
    header: Header
    records: int  # whole ones
    torn: int  # bytes that follow them

    @property
    def key(self) -> str:
        """Its name as it will be when it is complete, by which it stays known."""
        return key_of(self.path.name)

    @property
    def is_complete(self) -> bool:
        """Whether nothing will be added to it."""
        return self.path.suffix != OPEN

    def read(self, first: int = 0, count: int | None = None) -> Records:
        """Return up to `count` records from number `first` on, by default all there were when it was looked at.

        There are fewer if the file has been cut. Raises OSError, FileNotFoundError if it has been deleted.
        """
        return read(self.path, first, max(0, self.records - first) if count is None else count)

    def chunks(self, first: int = 0, size: int = CHUNK_RECORDS) -> Iterator[Records]:
        """Yield its records from number `first` on, `size` at a time. Raises as read() does."""
        for at in range(first, self.records, size):
            yield self.read(at, min(size, self.records - at))


@dataclasses.dataclass(slots=True)
class Journal:
    """What was found where one looked."""

    segments: list[Segment] = dataclasses.field(default_factory=list)  # the oldest of a directory first
    names: list[Path] = dataclasses.field(default_factory=list)
    rings: list[Path] = dataclasses.field(default_factory=list)
    problems: list[JournalError] = dataclasses.field(default_factory=list)  # of each file that was left out


def look(paths: Iterable[Path], wanted: Callable[[File], bool] | None = None) -> Journal:
    """Find the files of a journal: those in directories that are called as such files are, and any that is named.

    Of those in directories that hold records or names only those may be `wanted` for which this is true.

    A file that cannot be read becomes one of the problems. One in which nothing stands yet, not even a whole header, is
    no problem. Raises ConfigError for a path that is not there, or may not be looked at.
    """
    journal = Journal()
    known: set[Path] = set()  # each counts once, however often it is named
    for path in paths:
        try:
            is_directory = path.is_dir()
            inside = [*_files_in(path, wanted), *rings.files(path)] if is_directory else [path]
            for each in inside:
                if (real := each.resolve()) in known:
                    continue
                known.add(real)
                try:
                    _look_at(each, journal)
                except FileNotFoundError:
                    # Those of a journal that is kept short go at any time.
                    if not is_directory:
                        raise
        except FileNotFoundError as error:
            raise ConfigError(f"there is no file or directory {str(path)!r}") from error
        except OSError as error:
            raise ConfigError(f"cannot read {str(error.filename or path)!r}: {error.strerror}") from error
    return journal


def _files_in(directory: Path, wanted: Callable[[File], bool] | None) -> Iterator[Path]:
    return (file.path for file in files(directory) if wanted is None or wanted(file))


def segment(path: Path) -> Segment:
    """Look at one file of calls. Raises JournalError, which names the file, if it is none, and OSError."""
    header, size = header_of(path)
    if header is None:
        raise JournalError(f"{path}: its header is incomplete: the file was only just created, or was cut short")
    if header.kind != CALLS:
        raise JournalError(f"{path}: it holds {header.kind}, not {CALLS}")
    return Segment(path, header, *divmod(size, RECORD_BYTES))


def header_of(path: Path) -> tuple[Header | None, int]:
    """Return the header of a file and how many bytes follow it; no header if its writer has not come so far.

    Raises JournalError, which names the file, and OSError.
    """
    with open_file(path) as file:
        size = size_of(file)
        file.seek(0)
        data = file.read(HEADER_BYTES)
        if (
            len(data) < HEADER_BYTES
            and MAGIC.startswith(data[: len(MAGIC)])
            and Path(str(file.name)).suffix != f".{CALLS}"
        ):
            return None, 0
    try:
        return Header.parse(data), max(0, size - HEADER_BYTES)
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from error


def size_of(file: FileIO) -> int:
    """Return how many bytes a file has, without a large hole and what follows it.

    No writer leaves one, and a file that is made up could have a reader at work for ever.
    """
    status = os.fstat(file.fileno())
    if status.st_size - 512 * status.st_blocks > MOST_MISSING:
        return os.lseek(file.fileno(), 0, os.SEEK_HOLE)
    return status.st_size


def read(path: Path, first: int, count: int) -> Records:
    """Return up to `count` records of a file from number `first` on. Raises as open_file()."""
    with open_file(path) as file:
        found: Records = np.fromfile(file, RECORD, count, offset=HEADER_BYTES + first * RECORD_BYTES)
    return found


def open_file(path: Path) -> FileIO:
    """Open a file by the name it has by now: that of one that is complete has lost its end.

    Raises OSError, and JournalError if it is not a regular file.
    """
    complete = path.with_name(key_of(path.name))
    # It may be renamed between two tries.
    for name in (complete, complete.with_name(complete.name + OPEN)):
        with contextlib.suppress(FileNotFoundError):
            return FileIO(name, opener=_open)
    return FileIO(complete, opener=_open)


def _open(name: str, flags: int) -> int:
    # To open a pipe would wait for who writes it.
    fd = os.open(name, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise JournalError(f"{name}: it is not a regular file")
    return fd


def names_in(path: Path) -> tuple[Header | None, list[tuple[int, bytes]]]:
    """Return the header of a file of names, None if that is not whole yet, and its tokens and topics, as MessagePack.

    Raises JournalError, which names the file, and OSError.
    """
    header, _ = header_of(path)
    if header is None:
        return None, []
    with io.BufferedReader(open_file(path)) as file:
        file.seek(HEADER_BYTES)
        return header, [*entries(file)]


def topics(paths: Iterable[Path]) -> dict[int, bytes]:
    """Return by token the topics, as MessagePack, that stand in files of names. One that is gone by now has none."""
    found: dict[int, bytes] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found.update(names_in(path)[1])
    return found


def joined(parts: Iterable[Records]) -> Records:
    """Return all records of all parts, at least one. As mere bytes they are copied whole, and not field by field."""
    whole: Records = np.concatenate([part.view(_BYTES) for part in parts]).view(RECORD)
    return whole


def unix_ns(records: Records, header: Header) -> Int64s:
    """Return when the calls were answered: ns of Unix time, as the clock was when the file was begun."""
    with _anything_goes():
        ended: Int64s = (records["ended"] * 1e9).astype(np.int64)
    return ended + header.clock_ns


def waits_us(records: Records) -> Int64s:
    """Return how long the calls waited, in whole µs."""
    with _anything_goes():
        waits: Int64s = np.rint(records["wait"].astype(np.float64) * 1e6).astype(np.int64)
    return waits


def kinds(records: Records, field: str) -> npt.NDArray[np.uint8]:
    """Return for each record where in KINDS the word for one of its fields is, whatever its code."""
    found: npt.NDArray[np.uint8] = _KIND_OF_CODE[field][records[field]]
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Some of all records."""

    since: int | None = None  # Unix ns; itself included
    until: int | None = None  # Unix ns; itself not
    token: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether anything was asked for but all."""
        return self != ALL

    def of(self, records: Records, header: Header) -> Records:
        """Return those of one file's records that belong to it."""
        if self.token is not None:
            records = records.compress(records["token"] == self.token)
        if self.since is not None or self.until is not None:
            times = unix_ns(records, header)
            keep = np.ones(len(records), dtype=bool)
            if self.since is not None:
                keep &= times >= self.since
            if self.until is not None:
                keep &= times < self.until
            records = records.compress(keep)
        return records


ALL: Final = Selection()


def _look_at(path: Path, journal: Journal) -> None:
    if rings.is_ring(path.name):
        journal.rings.append(path)
        return
    try:
        header, size = header_of(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        journal.problems.append(JournalError(f"{path}: {error.strerror}"))
        return
    except JournalError as error:
        journal.problems.append(error)
        return
    if header is None:
        return
    if header.kind == NAMES:
        journal.names.append(path)
    elif header.kind == CALLS:
        journal.segments.append(Segment(path, header, *divmod(size, RECORD_BYTES)))


def _anything_goes() -> np.errstate:
    """A record that is damaged has any numbers, and what is made of them is any too."""
    return np.errstate(invalid="ignore", over="ignore")


RUN_RECORDS: Final = 8192
"""Records of each of several files that are read at a time."""

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
        self._chunks = segment.chunks(first, RUN_RECORDS)
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
