"""Numbers of nodes, tokens and topics as people write them: `1000`, `1e8`, `40k`, `10,100,1000`, `32..512`."""

from __future__ import annotations

import re
from typing import Final

_COUNT: Final = re.compile(r"(\d{1,15})(?:e(\d{1,2})|([kMG]))?", re.ASCII)
_FACTORS: Final = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9}


def count(text: str) -> int:
    """Return the number that `1000`, `1_000`, `1e8`, `40k`, `100M` or `10G` stands for. Raises ValueError."""
    match = _COUNT.fullmatch(text.strip().replace("_", ""))
    if match is None:
        raise ValueError(f"{text!r} is no whole number such as 1000, 1e8, 40k or 100M")
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
