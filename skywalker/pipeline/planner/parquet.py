"""Topics from Parquet, as the job `topics` writes it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skywalker.errors import ConfigError
from skywalker.pipeline.planner.murmur import tokens_of
from skywalker.pipeline.planner.skew import Zipf
from skywalker.pipeline.planner.topics import TOPICS_AT_ONCE, Batch, Piece, no_skew


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
