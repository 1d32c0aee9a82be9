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
        """Read them as a configuration has them: `1/16`, `64MiB/60s`. Raises ConfigError."""
        if sys.byteorder != "little":
            raise ConfigError("journal: records are little-endian, and this machine is not")
        every = _SAMPLE.fullmatch(sample.strip())
        if every is None:
            raise ConfigError(f"journal_sample: {sample!r} is no part of all calls such as 1/1 or 1/16")
        rotate_bytes, rotate_s = _rotation(rotate)
        return cls(Path(directory), int(every[1]), rotate_bytes, rotate_s, keep_bytes)


def _rotation(text: str) -> tuple[int, float]:
    try:
        most, _, longest = text.partition("/")
        found = size(most), duration(longest)
    except ValueError:
        found = (0, 0.0)
    if found[0] < LEAST_SEGMENT or found[1] < SHORTEST_SEGMENT_S:
        least = f"1MiB and {SHORTEST_SEGMENT_S:g}s"
        raise ConfigError(f"journal_rotate: {text!r} is no size and time such as 64MiB/60s, of {least} at least")
    return found
