"""A picture of the ring: who owns what, going around, and how far each share is from a fair one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from skywalker import extras
from skywalker.cli.ring.screen import LOWEST, counted, shown
from skywalker.errors import SkywalkerError
from skywalker.members import Member, Snapshot, arcs
from skywalker.ring import TOKENS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.projections.polar import PolarAxes

INK: Final = "#333a45"
FAINT: Final = "#8a929e"
GRID: Final = "#d9dde3"
COLOURS: Final = (
    *("#2a6fbb", "#e08a3c", "#3f8f5b", "#c8432b", "#8a5fb0", "#c9b22d"),
    *("#4fb3bf", "#d977a6", "#8b6b4f", "#7f9bd1", "#9dbb61", "#6b7280"),
)
"""One for each node, as long as they last; after that colours tell how full a node is."""

SPREAD: Final = 0.6
"""How far from a fair share, to either side, the colours of many nodes reach."""

LABELLED: Final = 40
"""Nodes whose names fit beside their bars; of more, every few are named."""

INNER, OUTER = 0.72, 1.0


class PictureError(SkywalkerError):
    """The picture cannot be drawn or written."""


def draw(snapshot: Snapshot, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises PictureError without matplotlib, or if it can't."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PictureError(f"a picture needs matplotlib: {extras.command_for('bench')}") from error
    members = sorted(snapshot, key=lambda member: (member.name, member.id))
    shares = snapshot.shares()
    colours = _colours(members, shares)
    figure = Figure(figsize=(10.5, 5.6), layout="constrained", facecolor="white")
    around = cast("PolarAxes", figure.add_subplot(121, projection="polar"))
    bars = figure.add_subplot(122)
    _ring(around, snapshot, colours)
    _shares(bars, members, shares, colours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a name may have letters that the font lacks; they become boxes
            figure.savefig(file, dpi=150)
    except OSError as error:
        raise PictureError(f"cannot write {file}: {error.strerror}") from error


def _colours(members: Sequence[Member], shares: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if len(members) <= len(COLOURS):
        return {member.id: to_rgb(colour) for member, colour in zip(members, COLOURS, strict=False)}
    fill = colormaps["coolwarm"]
    return {id: fill(0.5 + (share * len(members) - 1) / (2 * SPREAD)) for id, share in shares.items()}


def _ring(axes: PolarAxes, snapshot: Snapshot, colours: Mapping[str, tuple[float, ...]]) -> None:
    edges: list[float] = []
    fills: list[tuple[float, ...]] = []
    for arc in arcs(snapshot):
        start = (arc.start - LOWEST) / TOKENS * math.tau
        length = arc.length / TOKENS * math.tau
        # Cells have straight sides: one a degree makes them round.
        steps = max(1, math.ceil(math.degrees(length)))
        edges += [start + length * step / steps for step in range(steps)]
        fills += [colours[arc.share.node]] * steps
    edges.append(edges[0] + math.tau)
    axes.pcolormesh(edges, [INNER, OUTER], [fills], shading="flat", rasterized=True)
    for radius in (INNER, OUTER):  # makes the rim smooth
        axes.plot([math.tau * step / 720 for step in range(721)], [radius] * 721, color="white", linewidth=2)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, OUTER + 0.01)
    axes.set_axis_off()
    tokens = counted(sum(len(member.tokens) for member in snapshot), "token")
    axes.text(0, 0, f"{counted(len(snapshot), 'node')}\n{tokens}", ha="center", va="center", fontsize=13, color=INK)
    axes.text(math.pi, 0.3, f"ring {snapshot.version}", ha="center", va="center", fontsize=8, color=FAINT)
    axes.text(0, OUTER + 0.06, "±2⁶³", ha="center", va="bottom", fontsize=9, color=FAINT)
    axes.text(math.pi, OUTER + 0.06, "0", ha="center", va="top", fontsize=9, color=FAINT)


def _shares(
    axes: Axes, members: Sequence[Member], shares: Mapping[str, float], colours: Mapping[str, tuple[float, ...]]
) -> None:
    fair = 1 / len(members)
    many = len(members) > LABELLED
    ordered = sorted(members, key=lambda member: -shares[member.id]) if many else list(members)
    parts = [shares[member.id] for member in ordered]
    axes.barh(range(len(ordered)), parts, color=[colours[member.id] for member in ordered], height=1 if many else 0.75)
    axes.set_ylim(len(ordered) - 0.4, -0.6)
    axes.set_xlim(0, max(parts) * 1.02)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.axvline(fair, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    top, side = axes.get_xaxis_transform(), axes.get_yaxis_transform()
    axes.text(fair, 1.01, f"a fair share, {fair:.2%}", ha="center", va="bottom", transform=top, fontsize=9, color=INK)
    every = math.ceil(len(ordered) / LABELLED)
    size = 10 if len(ordered) <= len(COLOURS) else 6.5
    axes.set_yticks(range(0, len(ordered), every), [shown(each.name or each.id) for each in ordered[::every]])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a name may have dollar signs
    axes.tick_params(axis="y", colors=INK, labelsize=size, length=0)
    axes.tick_params(axis="x", colors=INK, labelsize=9, length=0)
    axes.grid(True, axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    for at in range(0, len(ordered), every):
        axes.text(1.02, at, f"{parts[at] / fair:.2f}", va="center", transform=side, fontsize=size, color=INK)
    axes.set_xlabel("share of all topics" + (", the busiest node first" if many else ""), fontsize=10, color=INK)
