"""The pictures of shares: who owns how much, what topics are hot, what is passed on, why calls met nobody."""

from __future__ import annotations

import math
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
    _names(
        axes,
        _places(workers),
    )
    side = axes.get_yaxis_transform()
    for at, load in list(enumerate(workers["load"]))[:: _every(len(workers))]:
        words = f"{load:.2f}"
        axes.text(1.01, at, words, va="center", transform=side, fontsize=9, color=style.INK)
    axes.text(1.01, -0.62, "of fair", va="bottom", transform=side, fontsize=8, color=style.FAINT)
    _finish(figure, axes)
    return figure


def topics(table: pd.DataFrame, waits: pd.DataFrame) -> Figure:
    """Draw the hottest topics: their share, and how long their calls took."""
    figure = style.figure(1.8 + 0.3 * len(table), "The hottest topics", "share of all calls, by method")
    axes = figure.subplots()
    left = [0.0] * len(table)
    parts = {"send": table["sends"], "recv and take": table["receives"], "publish": table["publishes"]}
    for (name, counts), colour in zip(parts.items(), (style.BLUE, style.ORANGE, style.PINK), strict=True):
        shares = [
            count / calls * share for count, calls, share in zip(counts, table["calls"], table["share"], strict=True)
        ]
        axes.barh(range(len(table)), shares, left=left, color=colour, height=0.7, label=name)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    _names(axes, [_topic(topic, token) for topic, token in zip(table["topic"], table["token"], strict=True)])
    tails = {row.token: row.p99_us for row in waits[waits["measure"] == "wait"].itertuples()}
    side = axes.get_yaxis_transform()
    for at, token in enumerate(table["token"]):
        if token in tails:
            axes.text(1.01, at, style.time_of(tails[token]), va="center", transform=side, fontsize=9, color=style.INK)
    axes.text(1.01, -0.62, "p99 wait", va="bottom", transform=side, fontsize=8, color=style.FAINT)
    _finish(figure, axes)
    return figure


def forwarding(table: pd.DataFrame) -> Figure:
    """Draw for each worker what it answers itself and what it passes on."""
    figure = style.figure(
        1.9 + 0.34 * min(len(table), LABELLED), "Calls that were passed on", "by the worker they came in at"
    )
    axes = figure.subplots()
    routes = {
        "here": ("owned here", style.BLUE),
        "to_sibling": ("to another worker", style.ORANGE),
        "to_node": ("to another node", style.RED),
    }
    left = [0.0] * len(table)
    for column, (name, colour) in routes.items():
        shares = (table[column] / table["calls"]).tolist()
        axes.barh(range(len(table)), shares, left=left, color=colour, height=0.7, label=name)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    _names(axes, _places(table))
    side = axes.get_yaxis_transform()
    for at, calls in list(enumerate(table["calls"]))[:: _every(len(table))]:
        axes.text(1.01, at, style.number_of(calls), va="center", transform=side, fontsize=9, color=style.INK)
    axes.text(1.01, -0.62, "calls", va="bottom", transform=side, fontsize=8, color=style.FAINT)
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
    left = [0.0] * len(causes)
    for method, colour in _METHODS.items():
        rows = table[table["method"] == method].groupby("cause")["calls"].sum()
        shares = [float(rows.get(cause, 0)) / missed if missed else 0.0 for cause in causes]
        if any(shares):
            axes.barh(range(len(causes)), shares, left=left, color=colour, height=0.66, label=method)
            left = [start + share for start, share in zip(left, shares, strict=True)]
    for at, share in enumerate(left):
        axes.text(share, at, f"  {share:.1%}", va="center", fontsize=9, color=style.INK)
    _names(axes, [f"{cause}: {CAUSES[cause]}" for cause in causes])
    _finish(figure, axes)
    axes.set_xlim(0, max([*left, 0.01]) * 1.1)
    return figure


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
