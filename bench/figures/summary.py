"""What a load test says to people: a line while it runs, a page at its end, and a picture."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.figures.picture import INK, blank, lay_grid, log_scale, save
from bench.load.outcome import PERCENTILES, Outcome
from bench.load.plan import Load
from bench.servers.usage import Usage

LABEL = 11
MIB = 1024 * 1024


def progress_of(outcome: Outcome) -> str:
    """Return in a line the last second's rate, and the latency and errors so far."""
    last = outcome.timeline[-1]
    words = f"{outcome.seconds:4.0f} s  {last.rate:>11,.0f} rendezvous/s  p99 {time_of(outcome.percentile_us(99))}"
    return f"{words}  {sum(outcome.errors.values()):,} errors"


def lines(outcome: Outcome, node: str) -> Iterator[str]:
    """Yield the page about a load test on `node`, line by line."""
    yield ""
    yield _row("node", node)
    yield _row("load", described(outcome.load, outcome.generators))
    early = ", ended early" if outcome.interrupted else ""
    yield _row("measured", f"{outcome.seconds:.1f} s after {outcome.warm_up_s:g} s of warm-up{early}")
    yield ""
    asked = f", asked for {outcome.load.rate:,.0f}" if outcome.load.rate else ""
    yield _row("rate", f"{outcome.rate:>11,.0f}  rendezvous/s{asked}")
    if outcome.load.shared:
        yield _row("received", f"{outcome.total.received:>11,}  values, of {outcome.total.sent:,} sent")
    for percent in PERCENTILES:
        since = ("a send! was due" if outcome.load.rate else "a send! was made") if percent == 50 else ""
        label = "max" if percent == 100 else f"p{percent:g}"
        yield _row(label, f"{time_of(outcome.percentile_us(percent)):>14}{f'  since {since}' if since else ''}")
    yield _row("errors", ", ".join(f"{count:,} {code}" for code, count in outcome.errors.items()) or "none")
    if outcome.total.moved:
        yield _row("moved", f"{_counted(outcome.total.moved, 'connection')}, whose worker was leaving")
    if outcome.forwarded is not None:
        yield _row("forwarded", f"{outcome.forwarded:.0%} of the calls, from one worker to another")
    yield ""
    if outcome.server:
        yield from usage_lines(outcome.server)
        if outcome.rate_per_core:
            yield _row("", f"{outcome.rate_per_core:,.0f} rendezvous per core-second of the server")
    yield _row("generator", f"{outcome.generator_cores:.2f} cores")
    for warning in outcome.warnings():
        yield ""
        yield _row("note", warning)
    yield ""


def described(load: Load, generators: int) -> str:
    """Return in a line what a load is."""
    words = [
        f"{_counted(load.pairs, 'pair')} x {load.in_flight} in flight",
        f"{load.rate:,.0f} a second" if load.rate else "closed loop",
        f"{load.value_bytes}-byte values",
        *([f"{_counted(load.topic_count, 'topic')} shared"] if load.shared else []),
        *([f"{load.dialect} dialect"] if load.dialect != "current" else []),
        "direct to owners" if load.direct else "through any worker",
        _counted(generators, "generator"),
    ]
    return ", ".join(words)


def usage_lines(usage: Usage) -> Iterator[str]:
    """Yield what each process of a server uses."""
    memory = sum(process.own_bytes or process.resident_bytes for process in usage.processes)
    yield _row("server", f"{usage.cores:.2f} cores, {memory / MIB:,.0f} MiB of its own")
    yield _row("", f"{'pid':>8}  {'cores':>6}  {'resident':>10}  {'its own':>10}  process")
    for process in usage.processes:
        own = "" if process.own_bytes is None else f"{process.own_bytes / MIB:,.1f} MiB"
        resident = f"{process.resident_bytes / MIB:,.1f} MiB"
        yield _row("", f"{process.pid:>8}  {process.cores:>6.2f}  {resident:>10}  {own:>10}  {process.name}")


def time_of(us: float | None) -> str:
    """Return microseconds as people read them, with three digits."""
    if us is None:
        return "-"
    for unit, size in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        if us < 1000 * size or unit == "s":
            number = us / size
            return f"{number:.{0 if number >= 100 or unit == 'us' else 1 if number >= 10 else 2}f} {unit}"
    raise AssertionError(us)


def _row(label: str, text: str) -> str:
    return f"  {label:<{LABEL}}{text}".rstrip()


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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
