"""How the pictures of the benchmarks look, and the files they go to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bench.errors import BenchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#333a45"
GRID: Final = "#d9dde3"


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
