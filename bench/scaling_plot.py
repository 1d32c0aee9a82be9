"""A picture of how a node scales: rendezvous per core-second by workers, for each shape."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.picture import INK, lay_grid, save
from bench.plan import Mode
from bench.report import Report, Route
from skywalker import extras

COLOURS: Final = ("#2a6fbb", "#c8432b", "#3f8f5b", "#8a5fb0", "#b8860b")


def draw(report: Report, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.ticker import FuncFormatter, NullLocator
    except ImportError as error:
        raise BenchError(f"a plot needs matplotlib: {extras.command_for('bench')}") from error
    rates = [case for case in report.samples if case.mode == Mode.CLOSED_LOOP]
    shapes = list(dict.fromkeys(case.shape for case in rates))
    counts = sorted({case.workers for case in rates})
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axes = figure.subplots()
    for number, shape in enumerate(shapes):
        colour = COLOURS[number % len(COLOURS)]
        for route, style in ((Route.DIRECT, "-"), (Route.ANY, ":")):
            # One worker has every call directly.
            line = [case for case in rates if case.shape == shape and (case.route == route or case.workers == 1)]
            axes.plot(
                [counts.index(case.workers) for case in line],
                [report.median(case, "rate_per_core") for case in line],
                f"o{style}",
                color=colour,
                linewidth=2,
                markersize=5,
            )
    handles = [Line2D([], [], color=COLOURS[at % len(COLOURS)], linewidth=2) for at in range(len(shapes))]
    handles += [Line2D([], [], color=INK, linewidth=2, linestyle=style) for style in ("-", ":")]
    names = [*(f"{shape} in flight" for shape in shapes), "directly to the owner", "through any worker"]
    axes.legend(handles, names, frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set_title("rendezvous per core-second of the server", loc="left", fontsize=10.5, color=INK)
    axes.set_xlabel("workers", color=INK)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    rates_seen = [report.median(case, "rate_per_core") for case in rates]
    bottom, top = min(rates_seen) / 1.3, max(rates_seen) * 1.3
    ticks = [step * 10.0**power for power in range(9) for step in (1, 2, 5)]
    axes.set_yscale("log")
    axes.set_ylim(bottom, top)
    axes.set_yticks([tick for tick in ticks if bottom <= tick <= top])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.0f}"))
    lay_grid(axes, "y")
    save(figure, file)
