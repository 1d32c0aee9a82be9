"""The pictures with time on their x axis: waits, rates, and the heat map of the ring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skywalker.pipeline.report import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PERCENTILES: Final = {"p50_us": "p50", "p90_us": "p90", "p99_us": "p99", "p999_us": "p99.9"}
_MEASURES: Final = {
    "wait": "all calls that met their partner",
    "hand-off": "of these, calls whose partner was already there",
}


def waits(table: pd.DataFrame, seconds: int) -> Figure:
    """Draw percentiles of both measures over time, from steps of so many seconds."""
    figure = style.figure(6.2, "How long calls took", f"percentiles of each {_step(seconds)}, logarithmic")
    for axes, (measure, words) in zip(figure.subplots(2, 1, sharex=True), _MEASURES.items(), strict=True):
        rows = table[table["measure"] == measure]
        for (column, name), colour in zip(_PERCENTILES.items(), style.SHADES, strict=True):
            times, values = _spread(rows["time"], rows[column].clip(lower=0.5), seconds)
            axes.plot(times, values, color=colour, linewidth=1.6, label=name, marker=_marker(rows), markersize=4)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda us, _: style.time_of(us))
        axes.minorticks_off()
        axes.set_title(f"{measure}: {words}", loc="left", fontsize=10, color=style.INK)
        style.lay(axes)
        if rows.empty:
            _say(axes, "no such calls")
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=4, frameon=False, fontsize=9, labelcolor=style.INK)
    style.clock(axes)
    return figure


def rates(table: pd.DataFrame, lengths: pd.DataFrame, seconds: int) -> Figure:
    """Draw calls a second by outcome; `lengths` has the seconds of each step, and the peaks, of capacity()."""
    figure = style.figure(4.2, "Calls a second", f"by what became of them, in each {_step(seconds)}")
    axes = figure.subplots()
    joined = table.merge(lengths[["time", "seconds", "peak"]], on="time").sort_values("time")
    kinds = {
        "prompt": ("partner was there", style.BLUE),
        "met": ("waited and met, or passed on", style.SKY),
        "timed_out": ("timed out", style.ORANGE),
        "other": ("cancelled, gone, refused", style.RED),
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
            axes.plot(edges, high, color=style.INK, linewidth=0.9, label="busiest second")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda rate, _: style.number_of(rate))
    style.lay(axes)
    style.clock(axes)
    axes.set_ylabel("calls a second", fontsize=9, color=style.INK)
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=style.INK)
    return figure


def heat(table: pd.DataFrame, seconds: int, bands: int) -> Figure:
    """Draw calls a second by time and by where on the ring their topics are."""
    import numpy as np
    from matplotlib.colors import LogNorm

    figure = style.figure(
        4.8, "Where on the ring the calls are", f"{bands} equal bands of tokens, in each {_step(seconds)}"
    )
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
    axes.set_ylabel("token of the topic", fontsize=9, color=style.INK)
    style.lay(axes)
    axes.grid(False)
    style.clock(axes)
    bar = figure.colorbar(drawn, ax=axes, pad=0.01)
    bar.set_label("calls a second, logarithmic", fontsize=9, color=style.INK)
    bar.ax.yaxis.set_major_formatter(lambda rate, _: style.number_of(rate))
    bar.ax.tick_params(colors=style.INK, labelsize=9, length=0)
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


def _marker(rows: pd.DataFrame) -> str:
    # Points that stand alone make no line.
    return "o" if len(rows) < 40 else ""


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, fontsize=10, color=style.FAINT)
