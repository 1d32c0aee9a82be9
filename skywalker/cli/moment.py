"""Moments as people write and read them, in UTC."""

from __future__ import annotations

import datetime
import time
from typing import Final

from skywalker import units

_NS: Final = 1_000_000_000
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def parse(text: str) -> int:
    """Return the Unix ns that `5m`, for five minutes ago, or a time such as 2025-06-15T15:06 stands for.

    Raises ValueError.
    """
    try:
        return time.time_ns() - int(units.duration(text) * _NS)
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a time that has passed since, such as 90s, 5m or 2h, nor one in UTC such as "
            "2025-06-15T15:06:40"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() * 1e6) * 1000


def shown(unix_ns: int) -> str:
    """Return a time in µs. A damaged record may be of any time, also of none that a calendar has."""
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=unix_ns // 1000)
    except OverflowError:
        return f"{unix_ns / _NS:.6f}"
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
