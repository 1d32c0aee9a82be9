"""Where a journal is kept, and how much of it."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError
from skywalker.limits import MIB
from skywalker.units import duration, size

_SAMPLE: Final = re.compile(r"(?:1/)?([1-9]\d{0,8})", re.ASCII)

LEAST_SEGMENT: Final = MIB
SHORTEST_SEGMENT_S: Final = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class JournalSettings:
    """How one journal is kept: a segment ends after so many bytes or seconds, the oldest go for the sake of `keep`."""

    directory: Path
    sample: int  # every so many-th call is recorded
    rotate_bytes: int
    rotate_s: float
    keep_bytes: int

    @classmethod
    def parse(cls, directory: str, sample: str, rotate: str, keep_bytes: int) -> JournalSettings:
        """Read them as a configuration has them. Raises ValueError as sampling() and rotation(), and ConfigError."""
        if sys.byteorder != "little":
            raise ConfigError("journal: records are little-endian, and this machine is not")
        return cls(Path(directory), sampling(sample), *rotation(rotate), keep_bytes)


SAMPLE: Final = "a part of all calls such as 1/1 or 1/16"


def sampling(text: str) -> int:
    """Return N of `1/N`, or raise ValueError."""
    every = _SAMPLE.fullmatch(text.strip())
    if every is None:
        raise ValueError(f"{text!r} is not {SAMPLE}")
    return int(every[1])


ROTATION: Final = f"a size and a time such as 64MiB/60s, of 1MiB and {SHORTEST_SEGMENT_S:g}s at least"


def rotation(text: str) -> tuple[int, float]:
    """Return the bytes and seconds of `64MiB/60s`, or raise ValueError."""
    most, _, longest = text.partition("/")
    found = size(most), duration(longest)
    if found[0] < LEAST_SEGMENT or found[1] < SHORTEST_SEGMENT_S:
        raise ValueError(f"{text!r} is not {ROTATION}")
    return found
