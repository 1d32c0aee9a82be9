"""Rows that were received and that Spark has not yet committed, in files: a row has a number, and keeps it.

A durable spool is on disk before its senders hear of it, and is found again by whoever opens its
directory next. The other kind is a temporary directory that goes with its process. One process
writes; tasks read, in other processes, what it tells them.

Values lie in blocks, each a header and what a MessagePack reader takes in one go: for each topic, its name, how many
values follow, and these as they came. A block's number is that of its first row. It is *open* until its values may be
acknowledged: the senders of an open one still have them, or the machine went down between the two.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import errno
import fcntl
import itertools
import os
import shutil
import stat
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from skywalker import own_directory
from skywalker.errors import ConfigError
from skywalker.limits import MIB
from skywalker.wire import values

_HEADER: Final = struct.Struct("<3sBIIIQ")  # magic, state, bytes of the body, CRC-32, rows, number
_COUNTS: Final = struct.Struct("<IQ")  # the end of a header, which the checksum is of besides the body
HEADER_BYTES: Final = _HEADER.size
STATE_AT: Final = 3
"""Where in a header the state is."""

OPEN: Final = 0
SEALED: Final = 1

MOST_ROWS: Final = 2**62
"""What numbers of rows are below: they must fit in what others take for a number."""

MOST_IN_VAIN: Final = 16
"""How often as many bytes as a file has are checked for blocks that turn out to be none."""

_MAGIC: Final = b"SWb"


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A block's place: the number of its first row, its rows, and where in the file its header begins and body ends."""

    first: int
    rows: int
    begin: int
    end: int
    is_sealed: bool

    @property
    def last(self) -> int:
        """The number after that of its last row."""
        return self.first + self.rows


def pack(first: int, groups: Mapping[str, Sequence[bytes]]) -> bytes:
    """Return an open block of the encoded values of each topic."""
    parts: list[bytes] = []
    for topic, found in groups.items():
        parts += (values.pack(topic), values.pack(len(found)), *found)
    body = b"".join(parts)
    rows = sum(map(len, groups.values()))
    return _HEADER.pack(_MAGIC, OPEN, len(body), _checksum(body, rows, first), rows, first) + body


def _checksum(body: bytes | memoryview, rows: int, first: int) -> int:
    return zlib.crc32(body, zlib.crc32(_COUNTS.pack(rows, first)))


def scan(data: bytes | memoryview, begin: int = 0) -> Iterator[Block]:
    """Find the whole blocks from `begin` on; what follows them was torn, or damaged, or never written.

    Their numbers go up. A row has a byte at least.
    """
    row = 0
    while size := _claimed(data, begin):
        _, state, _, checksum, rows, first = _HEADER.unpack_from(data, begin)
        end = begin + HEADER_BYTES + size
        if not (row <= first < first + rows <= MOST_ROWS and rows < size):
            return
        if _checksum(data[begin + HEADER_BYTES : end], rows, first) != checksum:
            return
        yield Block(first, rows, begin, end, state != OPEN)
        begin, row = end, first + rows


def _claimed(data: bytes | memoryview, at: int) -> int:
    """Return how many bytes a block there says that its body has; 0 if there is none, or they are not all there."""
    if len(data) - at < HEADER_BYTES:
        return 0
    magic, _, size, *_ = _HEADER.unpack_from(data, at)
    return size if magic == _MAGIC and at + HEADER_BYTES + size <= len(data) else 0


def runs(data: bytes) -> Iterator[list[Block]]:
    """Find all whole blocks of a file, also those behind what is damaged: each run is without a gap.

    Of a file that is forged to have much checked in vain, some may not be found.
    """
    begin, in_vain = 0, 0
    while begin != -1 and in_vain <= MOST_IN_VAIN * len(data):
        run = list(scan(data, begin))
        if run:
            yield run
        in_vain += _claimed(data, run[-1].end if run else begin)
        begin = data.find(_MAGIC, run[-1].end if run else begin + 1)


def is_torn(rest: bytes) -> bool:
    """Whether the last bytes of a file are a block whose writing was cut short, so that it was never relied on."""
    if len(rest) < HEADER_BYTES:
        return _MAGIC.startswith(rest[: len(_MAGIC)])
    magic, state, size, *_ = _HEADER.unpack_from(rest)
    return bool(magic == _MAGIC and state == OPEN and HEADER_BYTES + size > len(rest))


SEGMENT_BYTES: Final = 64 * MIB
"""Bytes after which a file is followed by another: what is committed goes away a file at a time."""

LOCK_S: Final = 10.0
"""Seconds in which the process of a query that was killed finds out, and lets go of its spool."""

TEMPORARY: Final = "skywalker-spool-"
"""What the name of a temporary spool begins with."""

_LOCK: Final = "lock"
_COMMITTED: Final = "committed"
_DIGITS: Final = 20
"""Of what is committed: more are no number of a row."""

_SUFFIX: Final = ".rows"
_DAMAGED: Final = ".damaged"


@dataclasses.dataclass(frozen=True, slots=True)
class Extent:
    """Rows within one file: whole blocks from `begin` to `end`, less some rows before and with those after left out."""

    path: str
    begin: int
    end: int
    skip: int
    rows: int


class Segment:
    """Blocks of one file that follow each other: all of it, unless it is damaged."""

    def __init__(self, path: Path, blocks: list[Block]) -> None:
        self.path = path
        self.blocks = blocks
        self.size = blocks[-1].end if blocks else 0

    @property
    def last(self) -> int:
        """The number after that of the last row."""
        return self.blocks[-1].last


class Spool:
    """The rows from `first` to before `end`. Made by open_spool()."""

    def __init__(self, directory: Path, lock: int, *, durable: bool) -> None:
        self.directory = directory
        self.durable = durable
        self.first = 0
        self.end = 0
        self.damaged: list[Path] = []  # files of which recover() could not read all
        self._sets_aside = False  # whether these get another name
        self._lock = lock
        self._segments: list[Segment] = []
        self._file = -1  # of the last segment, while it is written
        self._open: list[int] = []  # where in that file the blocks are that are not sealed

    # Writing.

    def start_at(self, row: int) -> None:
        """Give the next row this number at least: all before it is committed, or lost."""
        if self.end < row:
            self.commit(row)
            self.first = self.end = row

    def append(self, groups: Mapping[str, Sequence[bytes]]) -> None:
        """Write the encoded values of each topic. Raises OSError, and then none of them counts."""
        data = pack(self.end, groups)
        segment = self._segment()
        begin = segment.size
        if os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, f"{segment.path.name} was deleted while the query ran")
        try:
            _write_all(self._file, data, begin)
            if self.durable:
                os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, begin)
            raise
        rows = sum(map(len, groups.values()))
        segment.blocks.append(Block(self.end, rows, begin, begin + len(data), False))
        segment.size += len(data)
        self._open.append(begin)
        self.end += rows

    def seal(self) -> None:
        """Say that what was appended may be acknowledged from now on, so that its senders may have it no more."""
        for begin in self._open:
            os.pwrite(self._file, bytes((SEALED,)), begin + STATE_AT)
        self._open.clear()

    def _segment(self) -> Segment:
        """Return the segment to write to, open."""
        if self._file != -1 and self._segments[-1].size >= SEGMENT_BYTES:
            self._close_file()
        if self._file == -1:
            path = self.directory / f"{self.end:020d}-{_boot()}{_SUFFIX}"
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self._segments.append(Segment(path, []))
            if self.durable:
                _sync_directory(self.directory)
        return self._segments[-1]

    def _close_file(self) -> None:
        if self._file != -1:
            os.close(self._file)
            self._file = -1

    # What Spark does with it.

    def slices(self, start: int, end: int, parts: int) -> list[list[Extent]]:
        """Return where the rows from `start` to before `end` are, in at most so many parts of about the same size."""
        rows = end - start
        cuts = [start + rows * part // parts for part in range(parts + 1)]
        return [self._extents(low, high) for low, high in itertools.pairwise(cuts) if low < high]

    def _extents(self, start: int, end: int) -> list[Extent]:
        found = []
        for segment in self._segments:
            blocks = segment.blocks
            low = bisect.bisect_right(blocks, start, key=lambda block: block.last)
            high = bisect.bisect_left(blocks, end, key=lambda block: block.first)
            if low < high:
                first = max(start, blocks[low].first)
                rows = min(end, blocks[high - 1].last) - first
                skip = first - blocks[low].first
                found.append(Extent(str(segment.path), blocks[low].begin, blocks[high - 1].end, skip, rows))
        return found

    def commit(self, row: int) -> None:
        """Forget the rows before this one."""
        if row <= self.first:
            return
        self.first = min(row, self.end)
        if self.durable:
            # Not synced: it only matters to a query that begins anew on this spool, without its checkpoint.
            (self.directory / _COMMITTED).write_text(str(row))
        while self._segments and self._segments[0].last <= row:
            if len(self._segments) == 1:
                self._close_file()
                self._open.clear()
            path = self._segments.pop(0).path
            if not self._segments or self._segments[0].path != path:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        """Remove a file of which all that is whole is committed; what does not verify stays under another name."""
        with contextlib.suppress(FileNotFoundError):
            if path not in self.damaged:
                path.unlink()
            elif self._sets_aside:
                path.rename(_unused(path))

    # Life.

    def recover(self) -> None:
        """Take in what an earlier process left: all that is whole, but for what was surely not acknowledged.

        A file that is not whole goes to `damaged`, and is never removed.
        """
        for path in sorted(self.directory.glob(f"*{_SUFFIX}")):
            data, whole = _content(path)
            found: list[list[Block]] = []
            for run in runs(data):
                if run[0].first >= (found[-1][-1].last if found else self.end):
                    found.append(run)
            end = found[-1][-1].end if found else 0
            if not whole or sum(run[-1].end - run[0].begin for run in found) < end or not is_torn(data[end:]):
                self.damaged.append(path)
            boot = path.stem.partition("-")[2]
            while found and not found[-1][-1].is_sealed and boot == _boot():
                found[-1].pop()  # the process ended before it acknowledged them: their senders still have them
                if not found[-1]:
                    found.pop()
            for run in found:
                self._segments.append(Segment(path, run))
                self.end = run[-1].last
            if not found and path not in self.damaged:
                path.unlink()
        self.first = self._segments[0].blocks[0].first if self._segments else 0
        with contextlib.suppress(FileNotFoundError, ValueError):
            committed = int(_content(self.directory / _COMMITTED)[0][:_DIGITS])
            if committed <= MOST_ROWS:
                self.start_at(committed)
                self.commit(committed)

    def set_aside(self) -> None:
        """Give the damaged files another name: those with whole rows once these are committed, the others now."""
        self._sets_aside = True
        for path in {*self.damaged} - {segment.path for segment in self._segments}:
            self._remove(path)

    def close(self) -> None:
        """Let go of the directory; a temporary one is gone then."""
        self._close_file()
        if not self.durable:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self._lock != -1:
            os.close(self._lock)
            self._lock = -1


def open_spool(directory: Path | None, *, patience_s: float = LOCK_S) -> Spool:
    """Open the spool in a directory, which is made if need be; None means a temporary one.

    Raises ConfigError if it cannot be written to, or if another query uses it.
    """
    if directory is None:
        _sweep()
        directory = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        return Spool(directory, _locked(directory, 0.0), durable=False)
    try:
        if directory.is_symlink():
            raise ConfigError(f"option 'spool': {directory} is a link: name the directory that it leads to")
        own_directory.make(directory)
        lock = _locked(directory, patience_s)
    except OSError as error:
        raise ConfigError(f"option 'spool': {directory} cannot be written to: {error.strerror}") from error
    spool = Spool(directory.absolute(), lock, durable=True)
    try:
        spool.recover()
    except BaseException as error:
        spool.close()
        if isinstance(error, OSError):
            raise ConfigError(f"option 'spool': {error.filename} cannot be read: {error.strerror}") from error
        raise
    return spool


def _locked(directory: Path, patience_s: float) -> int:
    """Return a descriptor that holds the lock of a directory for as long as it is open."""
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                raise ConfigError(
                    f"option 'spool': {directory} is in use by another query; give each its own"
                ) from None
            time.sleep(0.05)
        else:
            return lock


def _sweep() -> None:
    """Remove the temporary spools of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*/{_LOCK}"):
        with contextlib.suppress(ConfigError, OSError):
            own_directory.check(path.parent)  # of others there may be a link in it, or it may be one
            lock = _locked(path.parent, 0.0)
            shutil.rmtree(path.parent, ignore_errors=True)
            os.close(lock)


def open_file(path: Path) -> BinaryIO:
    """Open a file of a spool to read it. Raises OSError, also for one that is a link or no regular file."""
    # To open a pipe would wait for who writes it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return open(fd, "rb")


def _content(path: Path) -> tuple[bytes, bool]:
    """Return what is in a file up to a hole, which none has that was written here, and whether that is all of it."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            end = os.lseek(file.fileno(), 0, os.SEEK_HOLE) if size else 0
            file.seek(0)
            return file.read(end), end >= size
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP):
            return b"", False
        raise


def _unused(path: Path) -> Path:
    """Return a name for a damaged file that no other has."""
    names = (path.with_name(f"{path.name}{number or ''}{_DAMAGED}") for number in itertools.count())
    return next(name for name in names if not name.exists())


def _write_all(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _boot() -> str:
    """Return what names the time since this machine started: what the kernel has of a file outlives any process."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
