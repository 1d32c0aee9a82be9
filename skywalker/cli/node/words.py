"""Numbers and texts as people read them: short, and with their unit. What is not known is a dash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skywalker.cli import terminal

NONE: Final = "-"
LONGEST_TEXT: Final = 60

_BARS: Final = "▁▂▃▄▅▆▇"
"""None as high as its line, so that lines of them stand apart."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def text(value: Any) -> str:
    """Return what others say as a terminal may have it."""
    return NONE if value in (None, "") else terminal.shown(str(value), LONGEST_TEXT)


def number(value: float | None) -> str:
    """Return a count or a rate: 1,234, 12.3M; a rate below 10 has a decimal."""
    if value is None:
        return NONE
    for factor, letter in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= 10 * factor:
            return f"{value / factor:,.1f}{letter}"
    return f"{value:.1f}" if 0 < abs(value) < 10 and value != int(value) else f"{value:,.0f}"


def size(value: float | None) -> str:
    """Return bytes: 17 B, 1.5 MiB."""
    if value is None:
        return NONE
    power = 0
    while abs(value) >= 1024 and power < len(_UNITS) - 1:
        value /= 1024
        power += 1
    return (
        f"{value:.0f} B"
        if not power
        else f"{value:.3g} {_UNITS[power]}"
        if value < 1000
        else f"{value:.0f} {_UNITS[power]}"
    )


def span(seconds: float | None) -> str:
    """Return a time that passed: 80 µs, 1.2 ms, 3.4 s, 5m 03s, 3h 12m, 3d 04h."""
    if seconds is None:
        return NONE
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for big, small, letters in ((86_400, 3600, "dh"), (3600, 60, "hm"), (60, 1, "ms")):
        if whole >= big:
            return f"{whole // big}{letters[0]} {whole % big // small:02}{letters[1]}"
    raise AssertionError("it is a minute at least")


def part(value: float | None) -> str:
    """Return a part of 1 in percent."""
    return NONE if value is None else f"{value:.0%}"


def flag(value: bool | None) -> str:
    """Return whether something is so."""
    return NONE if value is None else "yes" if value else "no"


def spark(values: Sequence[float | None], width: int) -> str:
    """Return values as `width` bars above 0, each the highest of its share of them; a gap where there was none."""
    count = len(values)
    shares = [
        values[at * count // width : max((at + 1) * count // width, at * count // width + 1)] for at in range(width)
    ]
    peaks = [max((value for value in share if value is not None), default=None) for share in shares]
    highest = max((peak for peak in peaks if peak is not None), default=0.0)
    top = len(_BARS) - 1
    return "".join(" " if peak is None else _BARS[round(top * peak / highest) if highest > 0 else 0] for peak in peaks)
