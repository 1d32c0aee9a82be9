"""The files of a journal: how they are called, begun, ended, taken over and given up.

    NODE-wWORKER-OPENED.calls.open    is written, and locked by who writes it
    NODE-wWORKER-OPENED.calls         is complete
    NODE-wWORKER-OPENED.names         grows as topics are met
    VERSION.ring                      see rings.py

OPENED is the Unix time in µs, so that names sort by age.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from skywalker import own_directory
from skywalker.journal import rings
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES, Header

OPEN: Final = ".open"

_NOT_OURS: Final = contextlib.suppress(FileNotFoundError, PermissionError)
"""For what another writer has done first, or another user has to do: no writer depends on the others."""

STEP_NS: Final = 1_000_000
"""By how much a clock is behind that was set back: it is read in two parts, one after the other."""

DRAINS_US: Final = 2 * 86_400 * 10**6
"""For how long a writer may go on beside its successor, with some to spare: workers drain for a day at most."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
# With a dot in front it is one that is just begun, under no name that counts yet.
_STEM: Final = re.compile(r"(?!\.)(?P<writer>.+-w\d+)-(?P<opened>\d+)\.(?P<kind>calls|names)(?:\.open)?", re.ASCII)


def key_of(name: str) -> str:
    """Return the name of a file as it will be when it is complete, by which it stays known."""
    return name.removesuffix(OPEN)


def writer_of(node: str, worker: int) -> str:
    """Return what the names of all files of one writer begin with."""
    return f"{_UNSAFE.sub('_', node)[:100]}-w{worker}"


class Segment:
    """One file while it is written. What is in it is whole, whenever the machine or the disk gives out."""

    def __init__(self, directory: Path, header: Header, last: Segment | None = None) -> None:
        """Begin it, behind the last that its writer began, if there is one.

        Raises OSError, also where others may tamper with what is in the directory.
        """
        own_directory.check(directory, own_directory.SHARED)
        self._header = header
        writer = writer_of(header.node, header.worker)
        suffix = f".{header.kind}{OPEN if header.kind == CALLS else ''}"
        self.opened = header.opened_ns // 1000
        # Readers take what is behind the last of a writer for new, and nothing before it. Who drains beside its
        # successor has the same name, but the files of neither are later than now, unless the clock was set back. That
        # it was set forward, and back by as much, while somebody drains and begins no file, is not seen.
        if last is None or self.opened <= last.opened or header.clock_ns < last._header.clock_ns - STEP_NS:
            after = [file.opened + 1 for file in files(directory) if file.writer == writer]
            self.opened = max([self.opened, *after, 0 if last is None else last.opened + 1])
        self.path = directory / f"{writer}-{self.opened:016d}{suffix}"
        self.size = 0
        # Under its name only once it is locked, or somebody might think that its writer has died.
        beside = directory / f".{self.path.name}"
        beside.unlink(missing_ok=True)  # of one that died; a link would be written through
        self._fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.write(header.pack())
            beside.rename(self.path)
        except OSError:
            os.close(self._fd)
            beside.unlink(missing_ok=True)
            raise

    def write(self, data: bytes | memoryview, unit: int = 0) -> None:
        """Add some bytes. Raises OSError where there is no room for all, having added as many whole units as fit.

        A `unit` has so many bytes, 0 for all of them.
        """
        end = self.size + len(data)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            end -= -(-len(rest) // (unit or len(data))) * (unit or len(data))
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
            raise
        finally:
            self.size = end

    def close(self, dropped: int = 0, moved: int = 0) -> None:
        """End it, and say how many records are missing, and connections came. Raises OSError if it can't be renamed."""
        try:
            if dropped or moved:
                os.pwrite(self._fd, dataclasses.replace(self._header, dropped=dropped, moved=moved).pack(), 0)
            elif self.size <= HEADER_BYTES:
                self.path.unlink(missing_ok=True)
                return
            if self.path.suffix == OPEN:
                self.path.rename(self.path.with_suffix(""))
        finally:
            os.close(self._fd)


class File(NamedTuple):
    """A file of a journal, by its name alone. To make paths of all names takes longer than to find them."""

    directory: Path
    name: str
    writer: str
    opened: int  # Unix time in µs
    kind: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.directory / self.name

    @property
    def is_open(self) -> bool:
        """Whether somebody wrote it when its name was read, or died before it was renamed."""
        return self.name.endswith(OPEN)

    @property
    def key(self) -> str:
        """Its name when it is complete, by which it stays known."""
        return key_of(self.name)


def files(directory: Path) -> list[File]:
    """Return all files of a journal, each once, the oldest first. Raises OSError."""
    # A listing may have one that is renamed meanwhile by both of its names, or by none; then another, begun later, has
    # it by the new one, as each is renamed but once.
    names = {*os.listdir(directory), *os.listdir(directory)}
    found = []
    for name in names:
        match = _STEM.fullmatch(name)
        if match and not (name.endswith(OPEN) and name.removesuffix(OPEN) in names):
            found.append(File(directory, name, match["writer"], int(match["opened"]), match["kind"]))
    return sorted(found, key=lambda file: (file.opened, file.name))


def complete(directory: Path) -> None:
    """End the segments of writers that died, whoever they were. Raises OSError."""
    for file in files(directory):
        if file.is_open:
            with _NOT_OURS, _locked(file.path) as is_left:
                if not is_left:
                    continue
                if file.path.lstat().st_size < HEADER_BYTES:
                    file.path.unlink()  # the machine lost power before the disk had its header: it is nobody's
                else:
                    file.path.rename(file.path.with_suffix(""))


def prune(directory: Path, keep_bytes: int) -> None:
    """Delete the oldest complete segments until the rest is small enough. Raises OSError.

    Names and rings are not counted. They go once nothing is left that needs them.
    """
    sizes: dict[File, int] = {}
    for file in files(directory):
        with contextlib.suppress(FileNotFoundError):
            # Not of what a link leads to, which is not in here.
            sizes[file] = file.path.lstat().st_size if file.kind == CALLS else 0
    surplus = sum(sizes.values()) - keep_bytes
    for file in [*sizes]:
        if surplus <= 0:
            break
        if file.kind == CALLS and not file.is_open:
            with contextlib.suppress(PermissionError):  # of another user: ours go instead
                file.path.unlink(missing_ok=True)
                surplus -= sizes.pop(file)
    left = [file for file in sizes if file.kind == CALLS]
    for path in _unneeded_names([*sizes]):
        with _NOT_OURS, _locked(path) as is_left:
            if is_left:
                path.unlink()
    rings.prune(directory, min((file.opened for file in left), default=time.time_ns() // 1000))


def _unneeded_names(there: list[File]) -> Iterator[Path]:
    """Yield the files of names, of files from the oldest on, that no file of calls needs.

    Each process that writes begins a file of its own, and those of one writer follow each other. So once a file has a
    successor, calls that were begun long after that are not of its process.
    """
    oldest: dict[str, int] = {}  # by writer, when the first of its files of calls was begun
    for file in there:
        if file.kind == CALLS:
            oldest.setdefault(file.writer, file.opened)
    succeeded: dict[str, int] = {}  # by writer, when the names after those that are looked at were begun
    for file in reversed(there):
        if file.kind == NAMES:
            first, next_at = oldest.get(file.writer), succeeded.get(file.writer)
            if first is None or (next_at is not None and first > next_at + DRAINS_US):
                yield file.path
            succeeded[file.writer] = file.opened


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Tell whether nobody writes a file, and see that nobody does meanwhile."""
    # To open a pipe would wait for who writes it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def now() -> tuple[int, int]:
    """Return the Unix time, and how far the monotonic clock is behind it: both in ns."""
    unix = time.time_ns()
    return unix, unix - time.monotonic_ns()
