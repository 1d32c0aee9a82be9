"""How the pictures of a report look: colours that everybody can tell apart, on white."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#333a45"
FAINT: Final = "#8a929e"
GRID: Final = "#d9dde3"

# Of Okabe and Ito, made for all kinds of sight.
BLUE: Final = "#0072b2"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
ORANGE: Final = "#e69f00"
RED: Final = "#d55e00"
PINK: Final = "#cc79a7"

SHADES: Final = ("#9ecae1", "#4f9bd0", "#1f6fb0", "#08306b")
"""From light to dark, for percentiles: what is rarer is darker."""

WIDTH: Final = 9.6  # inches
DPI: Final = 120


def figure(height: float, title: str, subtitle: str = "") -> Figure:
    """Return an empty figure with its title, `height` inches high."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
    made.suptitle(title + (f"\n{subtitle}" if subtitle else ""), x=0.01, ha="left", fontsize=12, color=INK)
    return made


def lay(axes: Axes, grid: str = "both") -> None:
    """Give axes lines to read values by, and no frame."""
    axes.grid(True, axis=grid, color=GRID, linewidth=0.8)  # type: ignore[arg-type]  # checked where it is drawn
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def clock(axes: Axes) -> None:
    """Have the x axis of axes tell the time of day, and the date where it changes."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]  # matplotlib has types for some of it
    axes.xaxis.set_major_locator(places)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]  # as above
    axes.set_xlabel("time (UTC)", fontsize=9, color=INK)


def time_of(us: float) -> str:
    """Return a time in µs with the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3g} {unit}" if us < 1000 * size else f"{us / size:,.0f} {unit}"
    return f"{us:.0f} µs"


def number_of(value: float) -> str:
    """Return a number as short as it can be read: 950, 12.5 k, 3.1 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def short(text: str, most: int = 28) -> str:
    """Return the name of something, cut in its middle if it is long."""
    text = "".join(char if char.isprintable() else "?" for char in text)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"
