"""Where the topics of a plan come from: batches of their tokens and calls, each made when it is its turn."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skywalker.errors import ConfigError, SkywalkerError
from skywalker.json_form import FormError, from_text
from skywalker.limits import MAX_TOPIC, MIB
from skywalker.pipeline.planner.murmur import Tokens, of_integers, tokens_of
from skywalker.pipeline.planner.skew import Zipf
from skywalker.ring import token_of
from skywalker.units import count
from skywalker.wire import values

TOPICS_AT_ONCE: Final = 1 << 19
"""Numbered topics in a batch, whose arrays take some 20 MB."""


class Batch(NamedTuple):
    """Some topics."""

    tokens: Tokens
    calls: NDArray[np.float64] | None  # in any unit, the same for all batches; None if the topics are alike


class Piece(NamedTuple):
    """A part of the work."""

    size: int  # in the unit of the source
    make: Callable[[], Batch]  # may be called in any thread


def no_skew(path: Path, skew: Zipf | None) -> None:
    """Raise ConfigError if there is a skew, for a file that says itself how many calls its topics have."""
    if skew is not None:
        raise ConfigError(f"{path} says how many calls its topics have: leave out --skew")


@dataclass(frozen=True, slots=True)
class Numbered:
    """The integers from 0 on, of which 0 is the hottest topic."""

    size: int
    skew: Zipf
    unit: str = "topics"

    def pieces(self) -> Iterator[Piece]:
        """Yield so many topics at a time as a core's cache can do with."""
        for first in range(0, self.size, TOPICS_AT_ONCE):
            count = min(TOPICS_AT_ONCE, self.size - first)
            yield Piece(count, functools.partial(self._batch, first, count))

    def _batch(self, first: int, count: int) -> Batch:
        calls = self.skew.calls(first, count) if self.skew.exponent else None
        return Batch(of_integers(np.arange(first, first + count)), calls)


BLOCK_BYTES: Final = 8 * MIB
"""Of a text file so much is read at a time; a line may not be longer."""

# What JSON can begin with, and of this the plain integers. Anything else is a string as it stands.
_MAYBE_JSON: Final = r'^\s*(["\[{\-0-9]|true|false|null|NaN|Infinity)'
_INTEGER: Final = r"^(0|-?[1-9][0-9]{0,17})$"


class TextFile:
    """One topic a line, as on a command line: JSON, or a bare word. After a tab may follow how many calls it has.

    Whether calls follow is decided by the first line. Without them the skew is applied, the hottest first. Empty
    lines are passed over.
    """

    unit = "bytes"

    def __init__(self, path: Path, skew: Zipf | None) -> None:
        """Look at the first line. Raises ConfigError if it can't be read, or has calls and there is a skew as well."""
        self._path = path
        self.skew: Zipf | None = skew or Zipf(0)
        try:
            with path.open("rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                self._has_calls = b"\t" in file.readline(BLOCK_BYTES)
        except OSError as error:
            raise ConfigError(f"cannot read topics from {path}: {error.strerror}") from error
        if self._has_calls:
            no_skew(path, skew)
            self.skew = None

    def pieces(self) -> Iterator[Piece]:
        """Yield so many whole lines at a time. Their batches raise ConfigError with the number of a bad line."""
        line, rest = 1, b""
        with self._path.open("rb") as file:
            while data := file.read(BLOCK_BYTES):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    yield Piece(len(whole) + 1, functools.partial(self._batch, whole, line))
                    line += whole.count(b"\n") + 1
                elif len(rest) > BLOCK_BYTES:
                    raise self._wrong(line, f"it is longer than {BLOCK_BYTES} bytes")
        if rest:
            yield Piece(len(rest), functools.partial(self._batch, rest, line))

    def _batch(self, block: bytes, first: int) -> Batch:
        """Read the lines of a block, of which the first has this number."""
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise self._wrong(first + block.count(b"\n", 0, error.start), "it is not UTF-8") from error
        lines = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
        numbers = np.flatnonzero(np.array([line != "" for line in lines], bool))
        topics = [lines[number] for number in numbers]
        calls: NDArray[np.float64] | None = None
        if self._has_calls:
            topics, calls = self._without_calls(topics, numbers + first)
        elif self.skew is not None and self.skew.exponent:
            calls = self.skew.calls(first - 1, len(lines))[numbers]
        return Batch(self._tokens(topics, numbers + first), calls)

    def _without_calls(self, lines: Sequence[str], numbers: NDArray[np.intp]) -> tuple[list[str], NDArray[np.float64]]:
        topics, calls = [], np.empty(len(lines))
        for at, line in enumerate(lines):
            topic, tab, count = line.rpartition("\t")
            if not tab or not count.isdecimal() or len(count) > 15:
                raise self._wrong(
                    int(numbers[at]), "no tab and a number of calls follow the topic, as in the first line"
                )
            topics.append(topic)
            calls[at] = int(count)
        return topics, calls

    def _tokens(self, topics: Sequence[str], numbers: NDArray[np.intp]) -> Tokens:
        column = pa.array(topics, pa.large_string())
        tokens: Tokens = tokens_of(column).to_numpy().copy()
        integer = pc.match_substring_regex(column, _INTEGER)
        tokens[integer.to_numpy(zero_copy_only=False)] = of_integers(column.filter(integer).cast(pa.int64()).to_numpy())
        # One by one what may be JSON, and what is too long if it is none.
        alone = pc.or_(
            pc.match_substring_regex(column, _MAYBE_JSON), pc.greater(pc.binary_length(column), MAX_TOPIC // 2)
        )
        for at in map(int, np.flatnonzero(pc.and_not(alone, integer).to_numpy(zero_copy_only=False))):
            try:
                tokens[at] = token_of(values.topic_bytes(values.pack(from_text(topics[at].encode()))))
            except (FormError, SkywalkerError) as error:
                raise self._wrong(int(numbers[at]), str(error)) from error
        return tokens

    def _wrong(self, line: int, problem: str) -> ConfigError:
        return ConfigError(f"{self._path}, line {line}: {problem}")


class Parquet:
    """Topics in a column `token` or `topic`, and perhaps `calls`: a Parquet file, or a directory of them.

    Where there are no calls the skew is applied, the hottest first.
    """

    unit = "topics"

    def __init__(self, path: Path, skew: Zipf | None) -> None:
        """Look at the columns. Raises ConfigError if they are not there, or there are calls and a skew as well."""
        self._path = path
        self.skew: Zipf | None = skew or Zipf(0)
        self._files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not self._files:
            raise ConfigError(f"{path} holds no .parquet files")
        self.size = 0
        for file in self._files:
            with _parquet(file) as opened:
                names = opened.schema_arrow.names
                self.size += opened.metadata.num_rows
            columns = [name for name in ("token", "topic") if name in names][:1]
            if not columns:
                raise ConfigError(f"{file} has neither a column 'token' nor 'topic', but {', '.join(names)}")
            self._columns = columns + ["calls"] * ("calls" in names)
        if "calls" in self._columns:
            no_skew(path, skew)
            self.skew = None

    def pieces(self) -> Iterator[Piece]:
        """Yield so many rows at a time. Raises ConfigError if a file can't be read, and their batches for nulls."""
        rank = 0
        for file in self._files:
            with _parquet(file) as opened:
                try:
                    for batch in opened.iter_batches(TOPICS_AT_ONCE, columns=self._columns):
                        yield Piece(batch.num_rows, functools.partial(self._batch, file, batch, rank))
                        rank += batch.num_rows
                except (pa.ArrowException, OSError) as error:
                    raise ConfigError(f"cannot read topics from {file}: {error}") from error

    def _batch(self, file: Path, batch: pa.RecordBatch, rank: int) -> Batch:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.null_count:
                raise ConfigError(f"{file} has null in its column '{name}': leave such rows out")
        topics = batch.column(0)
        try:
            tokens = topics.cast(pa.int64()) if batch.schema.names[0] == "token" else tokens_of(topics)
            calls = batch.column(1).cast(pa.float64()).to_numpy() if batch.num_columns > 1 else None
        except (TypeError, pa.ArrowException) as error:
            raise ConfigError(f"{file}: {error}") from error
        if self.skew is not None and self.skew.exponent:
            calls = self.skew.calls(rank, len(tokens))
        elif calls is not None and not (np.isfinite(calls) & (calls >= 0)).all():
            wrong = calls[~(np.isfinite(calls) & (calls >= 0))][0]
            raise ConfigError(f"{file} has {wrong:g} in its column 'calls': a topic has 0 calls or more")
        return Batch(tokens.to_numpy(), calls)


def _parquet(file: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(file)
    except OSError as error:
        raise ConfigError(
            f"cannot read topics from {file}: {os.strerror(error.errno) if error.errno else error}"
        ) from error
    except pa.ArrowException as error:
        raise ConfigError(f"{file} is no Parquet: {error}") from error


Source = Numbered | TextFile | Parquet
"""Topics, each of which comes once: pieces() yields all of the work, `size` in `unit`, in the same order each time."""

SYNTHETIC: Final = "synthetic:"

MOST: Final = 10**12
"""Numbered topics; at tens of millions a second they take a day."""


def source(text: str, skew: Zipf | None) -> Source:
    """Return the source for `synthetic:1e8`, or for the name of a text file, a Parquet file or a directory of them.

    Raises ValueError for a number that is none, and ConfigError for a file that can't be used.
    """
    if text.startswith(SYNTHETIC):
        number = count(text.removeprefix(SYNTHETIC))
        if not 1 <= number <= MOST:
            raise ValueError(f"{text!r}: it takes 1 to {MOST:,} topics")
        return Numbered(number, skew or Zipf(0))
    path = Path(text)
    return Parquet(path, skew) if path.is_dir() or path.suffix == ".parquet" else TextFile(path, skew)
