"""A picture of a soak: memory, open files and tables over time, and what was done meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.figures.picture import INK, lay_grid, save
from skywalker import extras
from skywalker.limits import MIB
from tests.soak.gauge import TABLES, Role, Sample
from tests.soak.run import Found

COLOURS: Final = ("#2a6fbb", "#c8432b", "#3f8f5b", "#8a5fb0", "#b8860b", "#5b6b7a", "#d07ba0", "#00838f")
DEEDS: Final = {"kill": "#c8432b", "reload": "#b8860b"}


def draw(found: Found, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchError(f"a plot needs matplotlib: {extras.command_for('bench')}") from error
    samples = found.samples
    began = samples[0].at
    scale, unit = (60.0, "minutes") if found.seconds >= 180 else (1.0, "seconds")
    times = [(sample.at - began) / scale for sample in samples]
    figure = Figure(figsize=(10, 10), layout="constrained")
    memory, files, clients, work = figure.subplots(4, 1, sharex=True, height_ratios=(4, 3, 2, 2))
    figure.suptitle(f"soak of {found.seconds:,.0f} s, {found.promises.calls:,} calls judged", fontsize=10.5, color=INK)
    for axes, title, lines in (
        (memory, "MiB of anonymous memory", _by_role([sample.own_bytes() for sample in samples], MIB)),
        (files, "open files", _by_role([sample.files() for sample in samples], 1)),
        (clients, "connections, at all nodes", _tables(samples, ("connections", "choked_connections"))),
        (work, "who waits, at all nodes", _tables(samples, ("waiting", "topics"))),
    ):
        for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
            axes.plot(times, values, label=name, color=colour, linewidth=1.4)
        for trouble in found.troubles:
            if colour := DEEDS.get(trouble.kind, ""):
                axes.axvline((trouble.since - began) / scale, color=colour, linewidth=0.7, alpha=0.35, zorder=0)
        axes.set_title(title, loc="left", fontsize=10, color=INK)
        axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="center left", bbox_to_anchor=(1, 0.5))
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, times[-1])
        lay_grid(axes)
    work.set_xlabel(f"{unit}; red: a worker was killed, ochre: told to end, or its node to reload", color=INK)
    save(figure, file)


def _by_role(found: Sequence[Mapping[Role, int]], unit: int) -> dict[str, list[float]]:
    roles = sorted({role for each in found for role in each})
    return {" ".join(role): [each[role] / unit if role in each else math.nan for each in found] for role in roles}


def _tables(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, list[float]]:
    """Return the sums of all nodes; while an agent is dead its node does not say, and there is none."""
    nodes = max(len(sample.tables) for sample in samples)
    return {
        TABLES[name]: [
            sum(tables[name] for tables in sample.tables.values()) if len(sample.tables) == nodes else math.nan
            for sample in samples
        ]
        for name in names
    }
