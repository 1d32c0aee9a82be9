"""`skywalker journal`: what the workers of a node wrote down of its calls, read by people and scripts."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from skywalker.cli import exits, moment, terminal
from skywalker.cli.options import result
from skywalker.errors import ConfigError
from skywalker.journal.names import size_of
from skywalker.json_form import FormError, from_text
from skywalker.ring import token_of
from skywalker.wire import values

if TYPE_CHECKING:
    from skywalker.journal.reading import Journal, Run, Segment, Selection

LOOK_S: Final = 0.2
"""Seconds between looks at what has come, with --follow."""

PRINTED: Final = 1024
"""Calls that are put into words at a time: their pieces stay in the cache of a processor until they are joined."""

Command = Callable[..., int]


@click.group(short_help="Read the calls that a node has recorded")
def journal() -> None:
    """Read the journal that `skywalker serve --journal DIR` keeps: a record of every call, or of every so many-th."""


def _moment(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else moment.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _what(command: Command) -> Command:
    """Add where a journal is and which of its records are wanted."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="print JSON"),
        click.option("--until", callback=_moment, metavar="TIME", help="only calls answered before then"),
        click.option(
            "--since",
            callback=_moment,
            metavar="TIME",
            help="only calls answered since: 5m for so long ago, or a UTC time",
        ),
        click.option("--topic", metavar="TOPIC", help="only calls on this topic, as `skywalker send` takes it"),
        click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


@journal.command(short_help="Print calls, a line for each")
@_what
@click.option("--limit", type=click.IntRange(1), metavar="N", help="end after so many")
@click.option("--follow", is_flag=True, help="go on with what comes, until interrupted")
def cat(
    paths: Sequence[Path],
    topic: str | None,
    since: int | None,
    until: int | None,
    as_json: bool,
    limit: int | None,
    follow: bool,
) -> int:
    """Print the calls that a journal holds, in the order in which they were answered.

    Times are in UTC. A topic whose name is not in the journal is shown by its token.
    """
    _need_numpy()
    from skywalker.cli.journal_text import HEADING, Topics, json_end, json_lines, lines
    from skywalker.cli.journal_text import topic as topic_of

    reader = _Reader(paths, _selection(topic, since, until))
    if not as_json:
        _print(f"{terminal.painted(HEADING, '2')}\n")
    left = limit
    topics = Topics(reader.names, json_end if as_json else topic_of)
    for run in reader.runs(follow):
        if topics.names is not reader.names:
            topics = Topics(reader.names, json_end if as_json else topic_of)
        wanted = run if left is None else run.head(left)
        for part in wanted.parts(PRINTED):
            _print((json_lines if as_json else lines)(part, topics))
        if left is not None:
            left -= len(wanted.times)
            if left == 0:
                break
    return reader.status


@journal.command(short_help="Print how many calls there were, how they ended and how long they waited")
@_what
@click.option("--top", type=click.IntRange(0), default=10, metavar="N", show_default=True, help="topics to list")
def stat(
    paths: Sequence[Path], topic: str | None, since: int | None, until: int | None, as_json: bool, top: int
) -> int:
    """Print the figures of a journal. A wait is told to a thousandth of itself, all else is exact."""
    _need_numpy()
    from skywalker.cli.journal_text import document, page
    from skywalker.journal.statistics import Statistics

    started = time.monotonic()
    selection = _selection(topic, since, until)
    reader = _Reader(paths, selection)
    statistics, sampled = Statistics(), False
    for segment in reader.look().segments:
        statistics.begin(segment.header)
        try:
            for chunk in segment.chunks():
                statistics.add(selection.of(chunk, segment.header), segment.header)
        except FileNotFoundError:
            reader.gone(segment)
        sampled = sampled or segment.header.sample > 1
    summary = statistics.summary(top)
    if as_json:
        terminal.write(result("read", started, value=document(summary, reader.names)))
    elif summary.records:
        _print("".join(f"{line}\n" for line in page(summary, reader.names, sampled)))
    else:
        terminal.complain("no call is on record there" + (" that was asked for" if selection.is_part else ""))
    return reader.status


class _Reader:
    """The files of a journal, as often as they are looked at. What cannot be read is said, and fails the command."""

    def __init__(self, paths: Sequence[Path], selection: Selection) -> None:
        self._paths = paths
        self._selection = selection
        self._read: dict[str, int] = {}  # by key of a file, how many records
        self._done: set[str] = set()  # keys of those that were complete
        self._said: set[str] = set()
        self.status = exits.OK
        self.names: dict[int, bytes] = {}
        self._names_read: dict[Path, int] = {}  # how many bytes of each file

    def look(self) -> Journal:
        """Find the files, and the names of topics, also beside files that are named."""
        from skywalker.journal.header import NAMES
        from skywalker.journal.reading import look, topics

        found = look(self._paths, lambda file: file.key not in self._done)
        for problem in found.problems:
            self.complain(str(problem))
        directories = {path.parent for path in self._paths if not path.is_dir()}
        beside = look(directories, lambda file: file.kind == NAMES) if found.segments else found
        sizes = {path: size for path in (*beside.names, *found.names) if (size := size_of(path))}
        if sizes != self._names_read:
            self.names = topics([*sizes])
            self._names_read = sizes
        return found

    def runs(self, follow: bool) -> Iterator[Run]:
        """Yield records in order, with `follow` without end."""
        from skywalker.journal.reading import merged

        while True:
            found = self.look().segments
            segments = [each for each in found if each.records > self._read.get(each.key, 0)]
            yield from merged(segments, self._read, self.gone, self._selection)
            self._read.update((segment.key, segment.records) for segment in segments)
            self._done.update(each.key for each in found if each.is_complete)
            if not follow:
                return
            time.sleep(LOOK_S)

    def gone(self, segment: Segment) -> None:
        """Say that a file is not there any more."""
        self.complain(f"{segment.path}: it was deleted before it was read")

    def complain(self, text: str) -> None:
        """Say what is wrong, once."""
        if text not in self._said:
            self._said.add(text)
            self.status = exits.FAILED
            terminal.complain(text)


def _selection(topic: str | None, since: int | None, until: int | None) -> Selection:
    from skywalker.journal.reading import Selection

    return Selection(since, until, None if topic is None else _token(topic))


def _token(topic: str) -> int:
    try:
        return token_of(values.canonical(values.pack(from_text(os.fsencode(topic)))))
    except FormError as error:
        raise click.UsageError(f"--topic {topic!r}: {error}") from error


def _need_numpy() -> None:
    if importlib.util.find_spec("numpy") is None:
        raise ConfigError("journals are read with numpy, which is not installed: pip install numpy")


def _print(text: str) -> None:
    terminal.write(text.encode(errors="replace"))
