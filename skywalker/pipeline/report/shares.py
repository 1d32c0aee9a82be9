"""The pictures of shares: who owns how much, what topics are hot, what is passed on, why calls met nobody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from skywalker.pipeline.jobs.timeouts import CAUSES
from skywalker.pipeline.report import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED: Final = 40
"""Workers whose names fit beside their bars; of more, every few are named."""

_METHODS: Final = {"send": style.BLUE, "recv": style.ORANGE, "take": style.GREEN, "publish": style.PINK}


def balance(table: pd.DataFrame) -> Figure:
    """Draw which share of the calls each worker owns and takes in, beside a fair one, and its part of the ring."""
    workers = table[(table["level"] == "worker") & table["fair"].notna()].sort_values(["node", "worker"])
    unknown = table[(table["level"] == "worker") & table["fair"].isna()]["share"].sum()
    subtitle = "share of all calls, by worker" + (f"; of {unknown:.1%} the owner is not known" if unknown else "")
    figure = style.figure(1.9 + 0.34 * min(len(workers), LABELLED), "Balance of the ring", subtitle)
    axes = figure.subplots()
    places = range(len(workers))
    axes.barh(places, workers["share"].fillna(0), color=style.BLUE, height=0.62, label="owned")
    axes.plot(workers["arrived_share"], places, "D", color=style.ORANGE, markersize=5, label="came in there")
    if workers["arc"].notna().any():
        axes.plot(
            workers["arc"], places, "|", color=style.INK, markersize=14, markeredgewidth=2, label="part of the ring"
        )
    if len(workers):
        fair = workers["fair"].iloc[0]
        axes.axvline(fair, color=style.INK, linewidth=1, linestyle=(0, (4, 3)), label=f"fair, {fair:.2%}")
    _names(axes, _places(workers))
    _beside(axes, "of fair", [f"{load:.2f}" for load in workers["load"]])
    _finish(figure, axes)
    return figure


def topics(table: pd.DataFrame, waits: pd.DataFrame) -> Figure:
    """Draw the hottest topics: their share, and how long their calls took."""
    figure = style.figure(1.8 + 0.3 * len(table), "The hottest topics", "share of all calls, by method")
    axes = figure.subplots()
    kinds = {
        "send": ("sends", style.BLUE),
        "recv and take": ("receives", style.ORANGE),
        "publish": ("publishes", style.PINK),
    }
    share = table["share"] / table["calls"]
    _stacked(axes, [(name, colour, (table[column] * share).tolist()) for name, (column, colour) in kinds.items()])
    _names(axes, [_topic(topic, token) for topic, token in zip(table["topic"], table["token"], strict=True)])
    tails = {row.token: row.p99_us for row in waits[waits["measure"] == "wait"].itertuples()}
    _beside(axes, "p99 wait", [style.time_of(tails[token]) if token in tails else "" for token in table["token"]])
    _finish(figure, axes)
    return figure


def forwarding(table: pd.DataFrame) -> Figure:
    """Draw for each worker what it answers itself and what it passes on."""
    figure = style.figure(
        1.9 + 0.34 * min(len(table), LABELLED), "Calls that were passed on", "by the worker they came in at"
    )
    axes = figure.subplots()
    routes = {
        "owned here": ("here", style.BLUE),
        "to another worker": ("to_sibling", style.ORANGE),
        "to another node": ("to_node", style.RED),
    }
    parts = [(name, colour, (table[column] / table["calls"]).tolist()) for name, (column, colour) in routes.items()]
    _stacked(axes, parts)
    _names(axes, _places(table))
    _beside(axes, "calls", [style.number_of(calls) for calls in table["calls"]])
    _finish(figure, axes)
    axes.set_xlim(0, 1)
    return figure


def timeouts(table: pd.DataFrame) -> Figure:
    """Draw calls that met nobody by cause, and by method within."""
    missed = table["calls"].sum()
    of_all = table["of_all"].sum()
    causes = [cause for cause in CAUSES if (table["cause"] == cause).any()]
    figure = style.figure(
        2.0 + 0.42 * max(1, len(causes)),
        "Why calls met nobody",
        f"{style.number_of(missed)} calls, {of_all:.2%} of all",
    )
    axes = figure.subplots()
    parts = []
    for method, colour in _METHODS.items():
        rows = table[table["method"] == method].groupby("cause")["calls"].sum()
        parts.append((method, colour, [float(rows.get(cause, 0)) / missed if missed else 0.0 for cause in causes]))
    ends = _stacked(axes, [part for part in parts if any(part[2])])
    for at, share in enumerate(ends):
        axes.text(share, at, f"  {share:.1%}", va="center", fontsize=9, color=style.INK)
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
        axes.text(1.01, at, words[at], va="center", transform=side, fontsize=9, color=style.INK)
    axes.text(1.01, -0.62, heading, va="bottom", transform=side, fontsize=8, color=style.FAINT)


def _names(axes: Axes, names: list[str]) -> None:
    every = _every(len(names))
    axes.set_yticks(range(0, len(names), every), names[::every])
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a name may have dollar signs


def _places(table: pd.DataFrame) -> list[str]:
    return [f"{style.short(node)} / {worker:.0f}" for node, worker in zip(table["node"], table["worker"], strict=True)]


def _every(count: int) -> int:
    return max(1, math.ceil(count / LABELLED))


def _topic(topic: Any, token: int) -> str:
    return style.short(topic) if isinstance(topic, str) else f"token {token}"


def _finish(figure: Figure, axes: Axes) -> None:
    style.lay(axes, "x")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9, labelcolor=style.INK)
