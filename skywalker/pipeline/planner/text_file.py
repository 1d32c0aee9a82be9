"""Topics from a text file, one a line."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skywalker.errors import ConfigError, SkywalkerError
from skywalker.json_form import FormError, from_text
from skywalker.limits import MAX_TOPIC, MIB
from skywalker.pipeline.planner.murmur import Tokens, of_integers, tokens_of
from skywalker.pipeline.planner.skew import Zipf
from skywalker.pipeline.planner.topics import Batch, Piece, no_skew
from skywalker.ring import token_of
from skywalker.wire import values

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
