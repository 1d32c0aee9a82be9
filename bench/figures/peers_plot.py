"""A picture of servers side by side: rendezvous per core-second by shape, and the time that one takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.figures.comparison import LATENCY, Comparison
from bench.figures.picture import GRID, INK, blank, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = {
    "skywalker": "#2a6fbb",
    "nats": "#3f8f5b",
    "redis": "#c8432b",
    "zeromq": "#b8860b",
    "echo": "#b9bfc8",
}


def draw(found: Comparison, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    cases = found.cases()
    columns = min(3, len(cases))
    rows = -(-len(cases) // columns)
    figure = blank(3.2 * columns, 2.9 * rows + 0.6)
    from matplotlib.patches import Patch  # blank() has seen that it is there

    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for unused in panels[len(cases) :]:
        unused.set_axis_off()
    for axes, case in zip(panels, cases, strict=False):
        if case == LATENCY:
            _latencies(axes, found)
        else:
            rates = {peer: found.median(case, peer, "rate_per_core") for peer in found.servers()}
            # The floor is far off where calls are batched, and would make all others look alike.
            shown = max(rate for peer, rate in rates.items() if rate and (peer != "echo" or len(rates) == 1)) * 1.3
            _bars(axes, rates, shown)
            axes.set_title(str(case), fontsize=10.5, color=INK)
    handles = [Patch(color=COLOURS[peer]) for peer in found.servers()]
    if len(panels) > len(cases):
        panels[-1].legend(handles, found.servers(), loc="center", frameon=False, labelcolor=INK, fontsize=10)
    else:
        figure.legend(handles, found.servers(), loc="outside lower center", ncols=5, frameon=False, labelcolor=INK)
    figure.suptitle(
        "rendezvous per core-second of the server (more is better)", x=0.01, ha="left", fontsize=11, color=INK
    )
    save(figure, file)


def _bars(axes: Axes, rates: dict[str, float | None], top: float) -> None:
    for at, (peer, rate) in enumerate(rates.items()):
        height = min(rate or 0.0, top)
        axes.bar(at, height, color=COLOURS[peer], width=0.75)
        words = "cannot\npipeline" if rate is None else _short(rate) + (" ↑" if rate > top else "")
        inside = rate is not None and rate > top
        axes.text(at, height, words, ha="center", va="top" if inside else "bottom", fontsize=8, color=INK)
    _plain(axes, top * 1.08)


def _latencies(axes: Axes, found: Comparison) -> None:
    top = 0.0
    for at, peer in enumerate(found.servers()):
        half, most = (found.median(LATENCY, peer, name) or 0.0 for name in ("p50_us", "p99_us"))
        axes.bar(at, most, color=COLOURS[peer], width=0.75, alpha=0.45)
        axes.bar(at, half, color=COLOURS[peer], width=0.75)
        axes.text(at, most, f"{half:,.0f}\n{most:,.0f}", ha="center", va="bottom", fontsize=8, color=INK)
        top = max(top, most)
    axes.set_title("one at a time: p50, p99 in us\n(less is better)", fontsize=10.5, color=INK)
    _plain(axes, top * 1.25)


def _plain(axes: Axes, top: float) -> None:
    axes.set_ylim(0, top)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def _short(rate: float) -> str:
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:.0f} k"
