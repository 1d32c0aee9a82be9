"""Times and sizes as people write them."""

from __future__ import annotations

import pytest

from skywalker.units import duration, size


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("10", 10), ("0.5", 0.5), ("500ms", 0.5), ("5s", 5), ("2m", 120), ("1h", 3600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1e3", "nan", "inf", "5 s", "5S", "s", "1_0", "\u0665", ".5", "9" * 400])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        duration(text)


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("4096", 4096), ("64KiB", 65536), ("1mib", 1 << 20), ("2GiB", 2 << 30)]
)
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "-1", "1.5MiB", "1KB", "1M", "KiB", "1 KiB", "9" * 400])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size(text)
