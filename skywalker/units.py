"""Times and sizes as people write them: `500ms`, `2m`, `64KiB`."""

from __future__ import annotations

import re
from typing import Final

from skywalker.limits import KIB, MIB

_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|)", re.ASCII)
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE: Final = re.compile(r"(\d{1,15})(kib|mib|gib|b|)", re.ASCII)
_BYTES: Final = {"": 1, "b": 1, "kib": KIB, "mib": MIB, "gib": 1024 * MIB}


def duration(text: str) -> float:
    """Return the seconds that `500ms`, `5s`, `2m`, `1h` or a bare number of seconds stands for, or raise ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no time such as 5, 500ms, 5s, 2m or 1h")
    number, unit = match.groups()
    return float(number) * _SECONDS[unit]


def size(text: str) -> int:
    """Return the bytes that `64KiB`, `1MiB`, `2GiB` or a bare number of bytes stands for, or raise ValueError."""
    match = _SIZE.fullmatch(text.strip().lower())
    if not match:
        raise ValueError(f"{text!r} is no size such as 4096, 64KiB or 1MiB")
    number, unit = match.groups()
    return int(number) * _BYTES[unit]
