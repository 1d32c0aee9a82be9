"""How the pictures of the benchmarks look, and the files they go to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from bench.errors import BenchError
from skywalker import extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#333a45"
GRID: Final = "#d9dde3"
FORMATS: Final = (".png", ".svg")


def blank(width: float, height: float) -> Figure:
    """Return an empty picture. Raises BenchError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchError(f"a plot needs matplotlib: {extras.command_for('bench')}") from error
    return Figure(figsize=(width, height), layout="constrained")


def log_scale(axis: Any, low: float, high: float, show: Callable[[float], str]) -> None:
    """Make an axis logarithmic, with a few round numbers from one figure to another one."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    ticks = [step * 10.0**power for power in range(10) for step in (1, 2, 5)]
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    axis.set_ticks([tick for tick in ticks if low <= tick <= high])
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda number, _: show(number)))


def lay_grid(axes: Axes, which: Literal["both", "y"] = "both") -> None:
    """Give axes lines to read values by, and no frame."""
    axes.grid(True, axis=which, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def save(figure: Figure, file: Path) -> None:
    """Write a picture in the format that the name of its file says. Raises BenchError if that cannot be."""
    try:
        figure.savefig(file, dpi=150)
    except OSError as error:
        raise BenchError(f"cannot write {file}: {error.strerror}") from error
