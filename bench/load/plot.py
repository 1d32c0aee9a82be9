"""A picture of a load test: how long calls took, by percentile, and the rate over time."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.load.outcome import Outcome
from bench.load.summary import described, time_of
from bench.picture import INK, lay_grid, save
from skywalker import extras

FORMATS: Final = (".png", ".svg")

BLUE, RED = "#2a6fbb", "#c8432b"
MARKS: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


def draw(outcome: Outcome, node: str, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullLocator
    except ImportError as error:
        raise BenchError(f"a plot needs matplotlib: {extras.command_for('bench')}") from error
    figure = Figure(figsize=(9, 6.6), layout="constrained")
    latency, rate = figure.subplots(2, 1, height_ratios=(3, 2))
    figure.suptitle(f"{node}\n{described(outcome.load, outcome.generators)}", fontsize=10.5, color=INK)

    # Each nine takes the same room: x is how rare it is that a call takes longer.
    curve = [(100 / (100 - percent), us) for percent, us in outcome.curve() if percent < 100]
    top = outcome.percentile_us(100) or 1.0
    right = max([10.0, *(rarity for rarity, _ in curve)])
    shown = [mark for mark in MARKS if 100 / (100 - mark) <= right]
    latency.plot([x for x, _ in curve] + [right], [us for _, us in curve] + [top], color=BLUE, linewidth=2)
    words = f"max {time_of(top)}"
    latency.annotate(words, (right, top), (0, 6), textcoords="offset points", ha="right", fontsize=9, color=INK)
    latency.set_xscale("log")
    latency.set_yscale("log")
    latency.set_xlim(1, right)
    latency.set_xticks([100 / (100 - mark) for mark in shown], [f"{mark:g} %" for mark in shown])
    latency.xaxis.set_minor_locator(NullLocator())
    low, high = (curve[0][1] if curve else 1.0), top
    bottom, ceiling = max(1.0, low / 1.5), high * 1.5
    ticks = [step * 10.0**power for power in range(10) for step in (1, 2, 5)]
    latency.set_ylim(bottom, ceiling)
    latency.set_yticks([tick for tick in ticks if bottom <= tick <= ceiling])
    latency.yaxis.set_minor_locator(NullLocator())
    latency.yaxis.set_major_formatter(FuncFormatter(lambda us, _: time_of(us).replace(".0 ", " ").replace(".00 ", " ")))
    latency.set_title("how long calls took, by percentile", loc="left", fontsize=10, color=INK)

    ends = [0.0, *itertools.accumulate(second.seconds for second in outcome.timeline)]
    rate.stairs([second.rate for second in outcome.timeline], ends, color=BLUE, linewidth=2, fill=True, alpha=0.25)
    rate.stairs([second.rate for second in outcome.timeline], ends, color=BLUE, linewidth=2)
    middles = [(start + end) / 2 for start, end in itertools.pairwise(ends)]
    failing = [middle for middle, second in zip(middles, outcome.timeline, strict=True) if second.errors]
    if failing:
        rate.plot(failing, [0.0] * len(failing), "x", color=RED, clip_on=False, label="seconds with errors")
        rate.legend(frameon=False, fontsize=9, labelcolor=INK)
    rate.set_xlim(0, ends[-1] or 1)
    rate.set_ylim(0, max([1.0, *(second.rate for second in outcome.timeline)]) * 1.15)
    rate.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.0f}"))
    rate.set_xlabel("seconds", color=INK)
    rate.set_title("rendezvous a second", loc="left", fontsize=10, color=INK)
    for axes in (latency, rate):
        lay_grid(axes)
    save(figure, file)
