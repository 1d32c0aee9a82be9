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
import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skywalker import own_directory
from skywalker.journal import rings
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES, Header

OPEN: Final = ".open"

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
# With a dot in front it is one that is just begun, under no name that counts yet.
_STEM: Final = re.compile(r"(?!\.)(?P<writer>.+-w\d+)-(?P<opened>\d+)\.(?P<kind>calls|names)(?:\.open)?", re.ASCII)


def key_of(path: Path) -> str:
    """Return the name of a file as it will be when it is complete, by which it stays known."""
    return path.name.removesuffix(OPEN)


def writer_of(node: str, worker: int) -> str:
    """Return what the names of all files of one writer begin with."""
    return f"{_UNSAFE.sub('_', node)[:100]}-w{worker}"


class Segment:
    """One file while it is written. What is in it is whole, whenever the machine or the disk gives out."""

    def __init__(self, directory: Path, header: Header) -> None:
        """Begin it. Raises OSError, also where others may tamper with what is in the directory."""
        own_directory.check(directory, own_directory.SHARED)
        self._header = header
        writer = writer_of(header.node, header.worker)
        suffix = f".{header.kind}{OPEN if header.kind == CALLS else ''}"
        # Also where the clock was set back: readers take what is behind the last for new, and nothing before it.
        after = [file.opened + 1 for file in files(directory) if file.writer == writer]
        self.opened = max([header.opened_ns // 1000, *after])
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

    def close(self, dropped: int) -> None:
        """End it, and say how many records are missing. Raises OSError if it cannot be renamed."""
        try:
            if dropped:
                os.pwrite(self._fd, dataclasses.replace(self._header, dropped=dropped).pack(), 0)
            if self.size <= HEADER_BYTES and not dropped:
                self.path.unlink(missing_ok=True)
            elif self.path.suffix == OPEN:
                self.path.rename(self.path.with_suffix(""))
        finally:
            os.close(self._fd)


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file of a journal, by its name alone."""

    path: Path
    writer: str
    opened: int  # Unix time in µs
    kind: str

    @property
    def is_open(self) -> bool:
        """Whether somebody wrote it when its name was read, or died before it was renamed."""
        return self.path.suffix == OPEN

    @property
    def key(self) -> str:
        """Its name when it is complete, by which it stays known."""
        return key_of(self.path)


def files(directory: Path) -> list[File]:
    """Return all files of a journal, each once, the oldest first. Raises OSError."""
    found: dict[str, File] = {}
    # One that is renamed while a directory is listed may be in the list under both names, or under none. It is renamed
    # once, so that another list has it.
    for path in itertools.chain(directory.iterdir(), directory.iterdir()):
        match = _STEM.fullmatch(path.name)
        if match:
            file = File(path, match["writer"], int(match["opened"]), match["kind"])
            if file.key not in found or not file.is_open:
                found[file.key] = file
    return sorted(found.values(), key=lambda file: (file.opened, file.path.name))


def complete(directory: Path) -> None:
    """End the segments of writers that died, whoever they were. Raises OSError."""
    for file in files(directory):
        if file.is_open:
            with contextlib.suppress(FileNotFoundError), _locked(file.path) as is_left:
                if is_left:
                    file.path.rename(file.path.with_suffix(""))


def prune(directory: Path, keep_bytes: int) -> None:
    """Delete the oldest complete segments until the rest is small enough. Raises OSError.

    Names and rings are not counted. They go once nothing is left of the writer that knew them, or that needs them.
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
            file.path.unlink(missing_ok=True)
            surplus -= sizes.pop(file)
    left = [file for file in sizes if file.kind == CALLS]
    writers = {file.writer for file in left}
    for file in sizes:
        if file.kind == NAMES and file.writer not in writers:
            with contextlib.suppress(FileNotFoundError), _locked(file.path) as is_left:
                if is_left:
                    file.path.unlink()
    rings.prune(directory, min((file.opened for file in left), default=time.time_ns() // 1000))


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
