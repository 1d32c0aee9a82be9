"""How far a stream has read a journal, and what it reads next. Knows no file but by what it is told of it.

Each writer has one file at a time, and their names sort by age. So of all that were complete and
read to the end it is enough to know the last, and how many records they had; of the others, how
many were read of each. Whatever lies between two positions stays the same for ever, or is missed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from skywalker.errors import ConfigError

Lost = Callable[[str], None]
"""Is told of records that are not there any more; raises, unless that is all right."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A file of calls, as it was found."""

    key: str  # its name when it is complete
    writer: str
    opened: int  # Unix time in µs
    records: int  # does not matter of one that is_done()
    complete: bool

    @property
    def age(self) -> tuple[int, str]:
        """What sorts files, the oldest first."""
        return self.opened, self.key


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one file, which may be renamed meanwhile."""

    key: str  # the file's name when it is complete
    first: int
    count: int


@dataclasses.dataclass(slots=True)
class Reach:
    """How far one writer's records have been read."""

    done: int = 0  # when the last of the files that are read to the end was opened
    records: int = 0  # that all of those had together
    files: dict[str, int] = dataclasses.field(default_factory=dict)  # how many of each of the others have been read


@dataclasses.dataclass(slots=True)
class Position:
    """How far all have been read; as plain data it is what Spark keeps as an offset."""

    newest: int = 0  # when the newest file was opened that was there
    writers: dict[str, Reach] = dataclasses.field(default_factory=dict)

    @classmethod
    def parse(cls, offset: Mapping[str, Any]) -> Self:
        """Read what to_offset() wrote. Raises ConfigError for anything else."""
        writers = offset.get("writers", {})
        try:
            found = cls(offset.get("newest", 0), {name: Reach(**reach) for name, reach in writers.items()})
            numbers = [found.newest]
            for reach in found.writers.values():
                numbers += [reach.done, reach.records, *reach.files.values()]
        except (AttributeError, TypeError) as error:
            raise ConfigError(f"the checkpoint holds no offset of a journal: {offset}") from error
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ConfigError(f"the checkpoint holds no offset of a journal: {offset}")
        return found

    def to_offset(self) -> dict[str, Any]:
        """Return it as JSON holds it, always in one order."""
        return {
            "newest": self.newest,
            "writers": {
                name: {"done": reach.done, "records": reach.records, "files": dict(sorted(reach.files.items()))}
                for name, reach in sorted(self.writers.items())
            },
        }

    def is_done(self, writer: str, opened: int) -> bool:
        """Return whether a writer's file, which was opened then, is one of those that are read to the end."""
        return writer in self.writers and opened <= self.writers[writer].done

    def read_of(self, file: Seen) -> int:
        """Return how many records of a file have been read."""
        if self.is_done(file.writer, file.opened):
            return file.records
        return self.writers.get(file.writer, Reach()).files.get(file.key, 0)


def advanced(start: Position, seen: Iterable[Seen], most: int | None, lost: Lost) -> Position:
    """Return where a stream gets to that reads up to `most` records more, the oldest files first.

    That is `start` itself if there are none, also where a file has been completed meanwhile: nothing then begins a
    batch without records.
    """
    files = sorted(seen, key=lambda file: file.age)
    end = copy.deepcopy(start)
    _tell_of_gone(start, end, files, lost)
    room = most
    total = 0
    for file in files:
        reach = end.writers.setdefault(file.writer, Reach())
        if file.opened <= reach.done:
            if not file.complete:
                lost(
                    f"{file.key}: it was begun, by its name, before others that were read: the clock has been set back"
                )
            continue
        have = reach.files.get(file.key, 0)
        if file.records < have:
            lost(f"{file.key}: it has been cut, from {have} records that were read to {file.records}")
            have = file.records
        count = file.records - have
        if room is not None:
            count = min(count, room)
            room -= count
        if count or file.key in reach.files or room != 0:
            reach.files[file.key] = have + count
        total += count
    if not total:
        return start
    _fold(end, files)
    end.newest = max([start.newest, *(file.opened for file in files)])
    return end


def _tell_of_gone(start: Position, end: Position, files: Sequence[Seen], lost: Lost) -> None:
    """Tell of files that were deleted while they were, or may have been, unread; forget them."""
    if files and start.newest and all(file.opened > start.newest for file in files):
        lost("every file that was there when the stream was read last has been deleted, and maybe later ones unread")
    there = {file.key for file in files}
    for reach in end.writers.values():
        for key in reach.files.keys() - there:
            lost(f"{key}: it was deleted, of which {reach.files[key]} records had been read, and maybe not all")
            del reach.files[key]


def _fold(end: Position, files: Iterable[Seen]) -> None:
    """Keep of files that are complete and read to the end no more than their sum, up to the first that is not."""
    stopped = set()
    for file in files:
        reach = end.writers[file.writer]
        if file.writer in stopped or file.opened <= reach.done:
            continue
        if file.complete and reach.files.get(file.key) == file.records:
            reach.done = file.opened
            reach.records += reach.files.pop(file.key)
        else:
            stopped.add(file.writer)


def between(start: Position, end: Position, seen: Iterable[Seen], lost: Lost) -> list[Stretch]:
    """Return what lies between two positions, the oldest files first; what is not there any more is told of."""
    stretches = []
    files = sorted(seen, key=lambda file: file.age)
    there = {file.key for file in files}
    for writer, reach in end.writers.items():
        began = start.writers.get(writer, Reach())
        done = [file for file in files if file.writer == writer and began.done < file.opened <= reach.done]
        missing = reach.records - began.records - sum(file.records for file in done)
        if missing:
            lost(f"{writer}: files with {missing} records have been deleted or cut")
        for key, count in reach.files.items():
            if key not in there and count > began.files.get(key, 0):
                lost(f"{key}: it was deleted before {count - began.files.get(key, 0)} of its records were read")
    for file in files:
        first, last = start.read_of(file), min(end.read_of(file), file.records)
        if last < end.read_of(file):
            lost(f"{file.key}: it has been cut, from {end.read_of(file)} records to {file.records}")
        if last > first:
            stretches.append(Stretch(file.key, first, last - first))
    return stretches


def bounded(seen: Iterable[Seen], target: Mapping[str, int]) -> list[Seen]:
    """Return files as they were when they had so many records, by key; what has come since is not there."""
    files = []
    for file in seen:
        if file.key in target:
            records = min(file.records, target[file.key])
            files.append(dataclasses.replace(file, records=records, complete=file.complete and records == file.records))
    return files
