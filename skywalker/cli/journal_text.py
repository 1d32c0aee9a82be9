"""Journals as people and scripts read them: a line for each call, and a page of figures."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from skywalker.cli import moment, terminal
from skywalker.cli.terminal import aligned
from skywalker.journal.header import Header
from skywalker.journal.reading import KINDS, Int64s, Run, kinds, waits_us
from skywalker.journal.statistics import PERCENTS, Summary
from skywalker.journal.topic_text import topic_text

INDENT: Final = "  "
DIM: Final = "2"
BOLD: Final = "1"

LONGEST_TOPIC: Final = 60
LONGEST_NAME: Final = 24

HEADING: Final = f"{'time (UTC)':<26}  {'worker':<12}  {'method':<7}  {'outcome':<15}  {'route':<7}  {'wait':>9}  topic"

MOST_TOPICS: Final = 1 << 20
"""Topics of which it is remembered what they are called."""

_NS: Final = 1_000_000_000

Words: TypeAlias = npt.NDArray[np.object_]
"""Strings, of which an index each chooses many at once."""

_THREE_DIGITS: Final[Words] = np.array([f"{number:03}" for number in range(1000)], dtype=object)
_THOUSANDS: Final[Words] = np.array(["", *map(str, range(1, 10_000))], dtype=object)
_RESTS: Final[Words] = np.array([*map(str, range(1000)), *_THREE_DIGITS], dtype=object)
"""What is left of numbers without thousands, and of those with some."""

Names = Mapping[int, bytes]
"""Topics by token, as MessagePack."""


class Topics(dict[int, str]):
    """What the topics of tokens are called in lines: each is put into words when it is first asked for."""

    def __init__(self, names: Names, word: Callable[[int, Names], str]) -> None:
        super().__init__()
        self.names = names
        self._word = word

    def __missing__(self, token: int) -> str:
        if len(self) == MOST_TOPICS:
            self.clear()
        word = self[token] = self._word(token, self.names)
        return word


def lines(run: Run, topics: Topics) -> str:
    """Return a line for each record. `topics` are those of topic()."""
    waits = [duration(wait / 1e6) for wait in waits_us(run.records).tolist()]
    origins, kinds = _by_origin(run, _line_origin), _by_kinds(run, _line_kinds)
    calls = zip(*_times(run, _line_second), origins, kinds, waits, _topics_of(run, topics), strict=True)
    return "".join(
        f"{second}{ms}{us}  {where}  {kind}  {wait:>9}  {topic}\n" for second, ms, us, where, kind, wait, topic in calls
    )


def json_lines(run: Run, topics: Topics) -> str:
    """Return a line of JSON for each record. `topics` are those of json_end()."""
    connections, sizes = (_numbers(run.records[field].astype(np.int64)) for field in ("connection", "size"))
    tokens = map(_json_token, run.records["token"].tolist())
    columns = (
        *(*_times(run, _json_second), _by_origin(run, _json_origin), *connections, tokens, *sizes),
        *(_by_kinds(run, _json_kinds), *_numbers(waits_us(run.records)), _topics_of(run, topics)),
    )
    # All pieces of all lines at once: to put together each line by itself takes twice as long.
    count = len(run.times)
    pieces = [""] * (len(columns) * count)
    for at, column in enumerate(columns):
        pieces[at :: len(columns)] = column
    return "".join(pieces)


def topic(token: int, names: Names) -> str:
    """Return what a topic is called, or its token, as a terminal may have it."""
    name = names.get(token)
    return terminal.shown(topic_text(name), LONGEST_TOPIC) if name is not None else f"token {token}"


def json_end(token: int, names: Names) -> str:
    """Return how a line of JSON ends: with what a topic is called, null if it has no name."""
    name = names.get(token)
    return f', "topic": {"null" if name is None else _json(topic_text(name))}}}\n'


def page(summary: Summary, names: Names, sampled: bool) -> Iterator[str]:
    """Yield the lines of a page of figures."""
    begin, end = moment.shown(summary.first_ns)[:19], moment.shown(summary.last_ns)[:19]
    yield ""
    yield INDENT + terminal.painted(f"{summary.calls:,} calls", BOLD)
    yield f"{INDENT}from {begin} to {end} UTC, {duration(summary.span_s)}"
    rate = f"{summary.rate:,.0f} a second; " if summary.rate is not None else ""
    yield f"{INDENT}{rate}values of {bytes_text(summary.size)}"
    if sampled:
        yield f"{INDENT}counted from {summary.records:,} records, since not every call was recorded"
    if summary.dropped:
        yield f"{INDENT}{summary.dropped:,} more records are missing, since the disk did not take them"
    if summary.moved:
        yield f"{INDENT}{summary.moved:,} connections moved from one worker to another, as did most of their calls"
    for part in (_ends(summary), *_places(summary), _topics(summary, names)):
        yield ""
        yield from (INDENT + line for line in part)
    yield ""


def document(summary: Summary, names: Names) -> dict[str, Any]:
    """Return the figures as JSON has them; waits are in seconds."""
    return {
        "records": summary.records,
        "dropped": summary.dropped,
        "moved": summary.moved,
        "calls": summary.calls,
        "first": summary.first_ns / _NS,
        "last": summary.last_ns / _NS,
        "rate": summary.rate,
        "value_bytes": summary.size,
        "methods": {
            method: {
                outcome: {"calls": waits.calls, "wait_s": {_percent(at): s for at, s in waits.seconds.items()}}
                for outcome, waits in outcomes.items()
            }
            for method, outcomes in summary.waits.items()
        },
        "routes": dict(summary.routes),
        "doors": dict(summary.doors),
        "workers": [{**writer._asdict(), "calls": calls} for writer, calls in summary.workers.items()],
        "topics": summary.topics,
        "top_topics": [
            {"token": token, "topic": topic_text(names[token]) if token in names else None, "calls": calls}
            for token, calls in summary.top
        ],
    }


def duration(seconds: float) -> str:
    """Return seconds as people say them: 12 µs, 1.23 ms, 3.2 s, 5 min 20 s, 2 h 3 min."""
    if seconds < 0.000_999_5:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.999_5:
        return f"{seconds * 1e3:#.3g} ms".replace(". ", " ")
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def bytes_text(size: int) -> str:
    """Return a number of bytes as people say it."""
    if size < 1000:
        return f"{size} B"
    for unit, bytes in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if size < 999_500 * bytes / 1e3:
            return f"{size / bytes:.3g} {unit}"
    return f"{size / 1e12:,.3g} TB"


def name_of(node: str, name: str) -> str:
    """Return what a node is called, or else how its id begins."""
    return terminal.shown(name or node[:8], LONGEST_NAME)


def _times(run: Run, word: Callable[[str], str]) -> tuple[list[str], list[str], list[str]]:
    """Return of each record the second in which it was answered, the ms since, and the µs since: three digits each."""
    ms, us = np.divmod(run.times // 1000, 1000)
    seconds, ms = np.divmod(ms, 1000)
    # They are in order: each second is put into words where it begins.
    begins = np.diff(seconds, prepend=seconds[:1] - 1) != 0
    words = [word(second) for second in seconds[begins].view("datetime64[s]").astype(str)]
    return _chosen(words, np.cumsum(begins) - 1), _chosen(_THREE_DIGITS, ms), _chosen(_THREE_DIGITS, us)


def _numbers(numbers: Int64s) -> tuple[list[str], list[str]]:
    """Return numbers in two pieces, their thousands and the rest, for which there are words: str() takes far longer."""
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= 1000 * len(_THOUSANDS):
        return [*map(str, numbers.tolist())], [""] * len(numbers)
    thousands, rest = np.divmod(numbers, 1000)
    return _chosen(_THOUSANDS, thousands), _chosen(_RESTS, np.where(thousands, rest + 1000, rest))


def _by_origin(run: Run, word: Callable[[Header], str]) -> list[str]:
    """Return for each record what is said of the file that it is from."""
    return _chosen([word(segment.header) for segment in run.segments], run.origins)


def _by_kinds(run: Run, word: Callable[[Mapping[str, str]], str]) -> list[str]:
    """Return for each record what is said of all its KINDS."""
    codes = [kinds(run.records, field) for field in KINDS]
    places = np.ravel_multi_index(codes, [len(each) for each in KINDS.values()])
    return _chosen(_all_kinds(word), places)


@functools.cache
def _all_kinds(word: Callable[[Mapping[str, str]], str]) -> Words:
    """Return what is said of any KINDS that there can be: of some hundred."""
    return np.array(
        [word(dict(zip(KINDS, each, strict=True))) for each in itertools.product(*KINDS.values())], dtype=object
    )


def _chosen(words: Words | list[str], places: npt.NDArray[Any]) -> list[str]:
    found: list[str] = np.asarray(words, dtype=object)[places].tolist()
    return found


def _line_second(second: str) -> str:
    return f"{second.replace('T', ' ')}."


def _line_origin(header: Header) -> str:
    return f"{terminal.shown(f'{_name(header)}/{header.worker}', 12):<12}"


def _line_kinds(kinds: Mapping[str, str]) -> str:
    return f"{kinds['method']:<7}  {kinds['outcome']:<15}  {kinds['route']:<7}"


def _json_second(second: str) -> str:
    return f'{{"time": "{second}.'


@functools.lru_cache
def _json_origin(header: Header) -> str:
    return f'Z", {_members(_about(header))}, "connection": '


@functools.lru_cache(MOST_TOPICS)
def _json_token(token: int) -> str:
    return f', "token": {token}, "size": '


def _json_kinds(kinds: Mapping[str, str]) -> str:
    return f', {_members(kinds)}, "wait_us": '


def _topics_of(run: Run, topics: Topics) -> Iterator[str]:
    return map(topics.__getitem__, run.records["token"].tolist())


def _json(data: Any) -> str:
    return terminal.json_line(data).decode().removesuffix("\n")


def _members(data: Mapping[str, Any]) -> str:
    """Return what stands in an object of JSON, without its braces."""
    return _json(data)[1:-1]


def _name(header: Header) -> str:
    return name_of(header.node, header.name)


def _about(header: Header) -> dict[str, Any]:
    return {
        "node": header.node,
        "name": _name(header),
        "worker": header.worker,
        "sample": header.sample,
        "ring": header.ring,
        "source": header.source,
    }


def _ends(summary: Summary) -> Iterator[str]:
    heads = ("method", "outcome", "calls", "share", *(f"wait {_percent(percent)}" for percent in PERCENTS))
    rows = [
        (
            method,
            outcome,
            f"{waits.calls:,}",
            f"{waits.calls / summary.calls:.1%}",
            *(duration(waits.seconds[percent]) for percent in PERCENTS),
        )
        for method, outcomes in summary.waits.items()
        for outcome, waits in outcomes.items()
    ]
    return _table(heads, rows, left=2)


def _places(summary: Summary) -> Iterator[Iterator[str]]:
    workers: Counter[str] = Counter()
    for (source, node, name, worker), calls in summary.workers.items():
        workers[
            f"{'' if source == 'node' else f'{terminal.shown(source, LONGEST_NAME)} '}{name_of(node, name)}/{worker}"
        ] += calls
    for head, counts in (("route", summary.routes), ("door", summary.doors), ("worker", workers)):
        rows = [(name, f"{calls:,}", f"{calls / summary.calls:.1%}") for name, calls in counts.items()]
        yield _table((head, "calls", "share"), rows, left=1)


def _topics(summary: Summary, names: Names) -> Iterator[str]:
    rest = summary.topics - len(summary.top)
    rows = [(topic(token, names), f"{calls:,}", f"{calls / summary.calls:.1%}") for token, calls in summary.top]
    yield from _table(("topic", "calls", "share"), rows, left=1)
    if rest:
        yield terminal.painted(f"and {rest:,} more topics", DIM)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> Iterator[str]:
    """Yield lines, the first `left` columns to the left and the others to the right."""
    head, *lines = aligned([heads, *rows], [at >= left for at in range(len(heads))])
    yield terminal.painted(head, DIM)
    yield from lines


def _percent(percent: float) -> str:
    return "longest" if percent == 100 else f"p{percent:g}"
