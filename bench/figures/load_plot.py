"""A picture of a load test: how long calls took, by percentile, and the rate over time."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

from bench.figures.picture import INK, blank, lay_grid, log_scale, save
from bench.figures.summary import described, time_of
from bench.load.outcome import Outcome

BLUE, RED = "#2a6fbb", "#c8432b"
MARKS: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


def draw(outcome: Outcome, node: str, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    figure = blank(9, 6.6)
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
    latency.set_xlim(1, right)
    latency.set_xticks([100 / (100 - mark) for mark in shown], [f"{mark:g} %" for mark in shown])
    latency.xaxis.minorticks_off()
    low = curve[0][1] if curve else 1.0
    log_scale(latency.yaxis, max(1.0, low / 1.5), top * 1.5, _short)
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
    rate.yaxis.set_major_formatter("{x:,.0f}")
    rate.set_xlabel("seconds", color=INK)
    rate.set_title("rendezvous a second", loc="left", fontsize=10, color=INK)
    for axes in (latency, rate):
        lay_grid(axes)
    save(figure, file)


def _short(us: float) -> str:
    return time_of(us).replace(".0 ", " ").replace(".00 ", " ")
