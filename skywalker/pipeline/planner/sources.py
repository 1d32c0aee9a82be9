"""The source of topics that an option names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from skywalker.pipeline.planner.parquet import Parquet
from skywalker.pipeline.planner.skew import Zipf
from skywalker.pipeline.planner.text_file import TextFile
from skywalker.pipeline.planner.topics import Numbered, Source
from skywalker.units import count

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
