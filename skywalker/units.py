"""Times, sizes and numbers as people write them: `500ms`, `64KiB`, `40k`."""

from __future__ import annotations

import re
from typing import Final

from skywalker.limits import KIB, MIB

_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|)", re.ASCII)
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE: Final = re.compile(r"(\d{1,15})(kib|mib|gib|b|)", re.ASCII)
_BYTES: Final = {"": 1, "b": 1, "kib": KIB, "mib": MIB, "gib": 1024 * MIB}
_COUNT: Final = re.compile(r"(\d{1,15})(?:e(\d{1,2})|([kMG]))?", re.ASCII)
_FACTORS: Final = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9}


def duration(text: str) -> float:
    """Return the seconds that `500ms`, `5s`, `2m`, `1h` or a bare number of seconds stands for, or raise ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a time such as 5, 500ms, 5s, 2m or 1h")
    number, unit = match.groups()
    return float(number) * _SECONDS[unit]


def size(text: str) -> int:
    """Return the bytes that `64KiB`, `1MiB`, `2GiB` or a bare number of bytes stands for, or raise ValueError."""
    match = _SIZE.fullmatch(text.strip().lower())
    if not match:
        raise ValueError(f"{text!r} is not a size such as 4096, 64KiB or 1MiB")
    number, unit = match.groups()
    return int(number) * _BYTES[unit]


def count(text: str) -> int:
    """Return the number that `1000`, `1_000`, `1e8`, `40k`, `100M` or `10G` stands for. Raises ValueError."""
    match = _COUNT.fullmatch(text.strip().replace("_", ""))
    if match is None:
        raise ValueError(f"{text!r} is not a whole number such as 1000, 1e8, 40k or 100M")
    number, zeros, factor = match.groups()
    total: int = int(number) * 10 ** int(zeros or 0) * _FACTORS[factor]
    return total


def counts(text: str, most: int) -> tuple[int, ...]:
    """Return the numbers that a list such as `10,100,1000` has, ascending; `32..512` doubles from one to the other.

    Raises ValueError if one is none, or is not from 1 to `most`.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        begin, end = count(first), count(last if dots else first)
        for number in (begin, end):
            if not 1 <= number <= most:
                raise ValueError(f"{part!r}: allowed are 1 to {most:,}")
        if begin > end:
            raise ValueError(f"{part!r}: the first is more than the last")
        number = begin
        while number < end:
            found.add(number)
            number *= 2
        found.add(end)
    return tuple(sorted(found))
