"""The pictures of a report, with colours that everybody can tell apart, on white."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from skywalker.pipeline.jobs.timeouts import CAUSES

if TYPE_CHECKING:
    import pandas as pd
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


def blank(height: float, title: str, subtitle: str = "") -> Figure:
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


_PERCENTILES: Final = {"p50_us": "p50", "p90_us": "p90", "p99_us": "p99", "p999_us": "p99.9"}
_MEASURES: Final = {
    "wait": "all calls that met their partner",
    "hand-off": "of these, calls whose partner was already there",
}


def waits(table: pd.DataFrame, seconds: int) -> Figure:
    """Draw percentiles of both measures over time, from steps of so many seconds."""
    figure = blank(6.2, "How long calls took", f"percentiles of each {_step(seconds)}, logarithmic")
    for axes, (measure, words) in zip(figure.subplots(2, 1, sharex=True), _MEASURES.items(), strict=True):
        rows = table[table["measure"] == measure]
        marker = "o" if len(rows) < 40 else ""  # points that stand alone make no line
        for (column, name), colour in zip(_PERCENTILES.items(), SHADES, strict=True):
            times, values = _spread(rows["time"], rows[column].clip(lower=0.5), seconds)
            axes.plot(times, values, color=colour, linewidth=1.6, label=name, marker=marker, markersize=4)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda us, _: time_of(us))
        axes.minorticks_off()
        axes.set_title(f"{measure}: {words}", loc="left", fontsize=10, color=INK)
        lay(axes)
        if rows.empty:
            _say(axes, "no such calls")
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=4, frameon=False, fontsize=9, labelcolor=INK)
    clock(axes)
    return figure


def rates(table: pd.DataFrame, lengths: pd.DataFrame, seconds: int) -> Figure:
    """Draw calls a second by outcome; `lengths` has the seconds of each step, and the peaks, of capacity()."""
    figure = blank(4.2, "Calls a second", f"by what became of them, in each {_step(seconds)}")
    axes = figure.subplots()
    joined = table.merge(lengths[["time", "seconds", "peak"]], on="time").sort_values("time")
    kinds = {
        "prompt": ("partner was there", BLUE),
        "met": ("waited and met, or passed on", SKY),
        "timed_out": ("timed out", ORANGE),
        "other": ("cancelled, gone, refused", RED),
    }
    starts = joined["time"].to_numpy()
    if len(starts):
        base = None
        for column, (name, colour) in kinds.items():
            level = (joined[column] / joined["seconds"]).to_numpy()
            top = level if base is None else base + level
            axes.fill_between(*_stairs(starts, base, top, seconds), color=colour, label=name, linewidth=0)
            base = top
        peaks = joined["peak"].to_numpy()
        if seconds > 1:
            edges, _, high = _stairs(starts, None, peaks, seconds)
            axes.plot(edges, high, color=INK, linewidth=0.9, label="busiest second")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda rate, _: number_of(rate))
    lay(axes)
    clock(axes)
    axes.set_ylabel("calls a second", fontsize=9, color=INK)
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=INK)
    return figure


def heat(table: pd.DataFrame, seconds: int, bands: int) -> Figure:
    """Draw calls a second by time and by where on the ring their topics are."""
    import numpy as np
    from matplotlib.colors import LogNorm

    figure = blank(4.8, "Where on the ring the calls are", f"{bands} equal bands of tokens, in each {_step(seconds)}")
    axes = figure.subplots()
    starts = _grid(table["time"], seconds)
    cells = np.full((bands, len(starts)), np.nan)
    columns = np.searchsorted(starts, table["time"].to_numpy().astype("datetime64[s]"))
    cells[table["band"].to_numpy(), columns] = table["calls"].to_numpy() / seconds
    edges = np.append(starts, starts[-1] + np.timedelta64(seconds, "s"))
    lowest, highest = np.nanmin(cells), np.nanmax(cells)
    scale = LogNorm(lowest, max(highest, lowest * 1.01))
    drawn = axes.pcolormesh(edges, np.arange(bands + 1), cells, cmap="cividis", norm=scale, rasterized=True)
    axes.set_yticks([0, bands / 4, bands / 2, 3 * bands / 4, bands], ["-2⁶³", "-2⁶²", "0", "2⁶²", "2⁶³"])
    axes.set_ylabel("token of the topic", fontsize=9, color=INK)
    lay(axes)
    axes.grid(False)
    clock(axes)
    bar = figure.colorbar(drawn, ax=axes, pad=0.01)
    bar.set_label("calls a second, logarithmic", fontsize=9, color=INK)
    bar.ax.yaxis.set_major_formatter(lambda rate, _: number_of(rate))
    bar.ax.tick_params(colors=INK, labelsize=9, length=0)
    bar.outline.set_visible(False)
    return figure


def _step(seconds: int) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            return unit if seconds == size else f"{seconds // size} {unit}s"
    return "second" if seconds == 1 else f"{seconds} seconds"


def _grid(times: pd.Series[Any], seconds: int) -> Any:
    """Return the start of every step from the first to the last, whether it has calls or not."""
    import numpy as np

    found = times.to_numpy().astype("datetime64[s]")
    return np.arange(found.min(), found.max() + np.timedelta64(seconds, "s"), np.timedelta64(seconds, "s"))


def _spread(times: pd.Series[Any], values: pd.Series[Any], seconds: int) -> tuple[Any, Any]:
    """Return values for every step, so that a line has a gap where there is none."""
    import numpy as np

    if times.empty:
        return [], []
    grid = _grid(times, seconds)
    spread = np.full(len(grid), np.nan)
    spread[np.searchsorted(grid, times.to_numpy().astype("datetime64[s]"))] = values.to_numpy()
    return grid, spread


def _stairs(starts: Any, low: Any, high: Any, seconds: int) -> tuple[Any, Any, Any]:
    """Return what fill_between() takes to draw a level for each step, and nothing between steps that are apart."""
    import numpy as np

    begin = starts.astype("datetime64[ms]")
    end = begin + np.timedelta64(seconds * 1000, "ms")
    gaps = np.append(begin[1:] > end[:-1], False)
    edges = np.stack([begin, end], axis=1).ravel()
    bottom = np.zeros(len(edges)) if low is None else np.repeat(low, 2)
    top = np.repeat(high, 2)
    if gaps.any():
        at = (np.flatnonzero(gaps) + 1) * 2
        edges = np.insert(edges, at, edges[at - 1])
        bottom, top = (np.insert(np.asarray(each, dtype=float), at, np.nan) for each in (bottom, top))
    return edges, bottom, top


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, fontsize=10, color=FAINT)


LABELLED: Final = 40
"""Workers whose names fit beside their bars; of more, every few are named."""

_METHODS: Final = {"send": BLUE, "recv": ORANGE, "take": GREEN, "publish": PINK}


def balance(table: pd.DataFrame) -> Figure:
    """Draw which share of the calls each worker owns and takes in, beside a fair one, and its part of the ring."""
    workers = table[(table["level"] == "worker") & table["fair"].notna()].sort_values(["node", "worker"])
    unknown = table[(table["level"] == "worker") & table["fair"].isna()]["share"].sum()
    subtitle = "share of all calls, by worker" + (f"; of {unknown:.1%} the owner is not known" if unknown else "")
    figure = blank(1.9 + 0.34 * min(len(workers), LABELLED), "Balance of the ring", subtitle)
    axes = figure.subplots()
    places = range(len(workers))
    axes.barh(places, workers["share"].fillna(0), color=BLUE, height=0.62, label="owned")
    axes.plot(workers["arrived_share"], places, "D", color=ORANGE, markersize=5, label="came in there")
    if workers["arc"].notna().any():
        axes.plot(workers["arc"], places, "|", color=INK, markersize=14, markeredgewidth=2, label="part of the ring")
    if len(workers):
        fair = workers["fair"].iloc[0]
        axes.axvline(fair, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"fair, {fair:.2%}")
    _names(axes, _places(workers))
    _beside(axes, "of fair", [f"{load:.2f}" for load in workers["load"]])
    _finish(figure, axes)
    return figure


def topics(table: pd.DataFrame, waits: pd.DataFrame) -> Figure:
    """Draw the hottest topics: their share, and how long their calls took."""
    figure = blank(1.8 + 0.3 * len(table), "The hottest topics", "share of all calls, by method")
    axes = figure.subplots()
    kinds = {
        "send": ("sends", BLUE),
        "recv and take": ("receives", ORANGE),
        "publish": ("publishes", PINK),
    }
    share = table["share"] / table["calls"]
    _stacked(axes, [(name, colour, (table[column] * share).tolist()) for name, (column, colour) in kinds.items()])
    _names(axes, [_topic(topic, token) for topic, token in zip(table["topic"], table["token"], strict=True)])
    tails = {row.token: row.p99_us for row in waits[waits["measure"] == "wait"].itertuples()}
    _beside(axes, "p99 wait", [time_of(tails[token]) if token in tails else "" for token in table["token"]])
    _finish(figure, axes)
    return figure


def forwarding(table: pd.DataFrame) -> Figure:
    """Draw for each worker what it answers itself and what it passes on."""
    figure = blank(1.9 + 0.34 * min(len(table), LABELLED), "Calls that were passed on", "by the worker they came in at")
    axes = figure.subplots()
    routes = {
        "owned here": ("here", BLUE),
        "to another worker": ("to_sibling", ORANGE),
        "to another node": ("to_node", RED),
    }
    parts = [(name, colour, (table[column] / table["calls"]).tolist()) for name, (column, colour) in routes.items()]
    _stacked(axes, parts)
    _names(axes, _places(table))
    _beside(axes, "calls", [number_of(calls) for calls in table["calls"]])
    _finish(figure, axes)
    axes.set_xlim(0, 1)
    return figure


def timeouts(table: pd.DataFrame) -> Figure:
    """Draw calls that met nobody by cause, and by method within."""
    missed = table["calls"].sum()
    of_all = table["of_all"].sum()
    causes = [cause for cause in CAUSES if (table["cause"] == cause).any()]
    figure = blank(
        2.0 + 0.42 * max(1, len(causes)),
        "Why calls met nobody",
        f"{number_of(missed)} calls, {of_all:.2%} of all",
    )
    axes = figure.subplots()
    parts = []
    for method, colour in _METHODS.items():
        rows = table[table["method"] == method].groupby("cause")["calls"].sum()
        parts.append((method, colour, [float(rows.get(cause, 0)) / missed if missed else 0.0 for cause in causes]))
    ends = _stacked(axes, [part for part in parts if any(part[2])])
    for at, share in enumerate(ends):
        axes.text(share, at, f"  {share:.1%}", va="center", fontsize=9, color=INK)
    _names(axes, [f"{cause}: {CAUSES[cause]}" for cause in causes])
    _finish(figure, axes)
    axes.set_xlim(0, max([*ends, 0.01]) * 1.1)
    return figure


def _stacked(axes: Axes, parts: Sequence[tuple[str, str, list[float]]]) -> list[float]:
    """Draw bars one after the other, each with its name, its colour and a share for each row; return where they end."""
    ends: list[float] = []
    for name, colour, shares in parts:
        ends = ends or [0.0] * len(shares)
        axes.barh(range(len(shares)), shares, left=ends, color=colour, height=0.7, label=name)
        ends = [start + share for start, share in zip(ends, shares, strict=True)]
    return ends


def _beside(axes: Axes, heading: str, words: Sequence[str]) -> None:
    """Write words to the right of the rows, of as many as have their names."""
    side = axes.get_yaxis_transform()
    for at in range(0, len(words), _every(len(words))):
        axes.text(1.01, at, words[at], va="center", transform=side, fontsize=9, color=INK)
    axes.text(1.01, -0.62, heading, va="bottom", transform=side, fontsize=8, color=FAINT)


def _names(axes: Axes, names: list[str]) -> None:
    every = _every(len(names))
    axes.set_yticks(range(0, len(names), every), names[::every])
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a name may have dollar signs


def _places(table: pd.DataFrame) -> list[str]:
    return [f"{short(node)} / {worker:.0f}" for node, worker in zip(table["node"], table["worker"], strict=True)]


def _every(count: int) -> int:
    return max(1, math.ceil(count / LABELLED))


def _topic(topic: Any, token: int) -> str:
    return short(topic) if isinstance(topic, str) else f"token {token}"


def _finish(figure: Figure, axes: Axes) -> None:
    lay(axes, "x")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=INK)
