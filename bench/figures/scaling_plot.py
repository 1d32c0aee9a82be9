"""A picture of how a node scales: rendezvous per core-second by workers, for each shape."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.figures.picture import INK, blank, lay_grid, log_scale, save
from bench.figures.samples import Mode
from bench.figures.scaling import Report, Route

COLOURS: Final = ("#2a6fbb", "#c8432b", "#3f8f5b", "#8a5fb0", "#b8860b")


def draw(report: Report, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    figure = blank(9, 4.8)
    from matplotlib.lines import Line2D  # blank() has seen that it is there

    rates = {key: report.median(*key, "rate_per_core") or 0.0 for key in report.samples if key[0].mode != Mode.LOCKSTEP}
    shapes = list(dict.fromkeys(case.shape for case, _ in rates))
    counts = sorted({node.workers for _, node in rates})
    axes = figure.subplots()
    for number, shape in enumerate(shapes):
        colour = COLOURS[number % len(COLOURS)]
        for route, style in ((Route.DIRECT, "-"), (Route.ANY, ":")):
            # One worker has every call directly.
            line = {
                counts.index(node.workers): rate
                for (case, node), rate in rates.items()
                if case.shape == shape and (node.route == route or node.workers == 1)
            }
            axes.plot(
                [*line],
                [*line.values()],
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
    log_scale(axes.yaxis, min(rates.values()) / 1.3, max(rates.values()) * 1.3, "{:,.0f}".format)
    lay_grid(axes, "y")
    save(figure, file)
