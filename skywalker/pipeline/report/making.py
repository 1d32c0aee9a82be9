"""A report is made: tables, pictures, and the page that has them all."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from skywalker import extras, own_directory
from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.defaults import PER_CORE
from skywalker.pipeline.report import over_time, shares, style
from skywalker.pipeline.report.page import Picture, page
from skywalker.pipeline.report.tables import BANDS_LOG2, Step, Tables, gather, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from skywalker.pipeline.jobs.inputs import Input

PAGE = "index.html"


def make(
    found: Input,
    output: Path,
    title: str,
    step: Step = silent,
    per_core: float = PER_CORE,
) -> Path:
    """Write tables/, pictures and the page into `output`; return the page. Each part of the work is done in a `step`.

    Raises ConfigError if there are no calls, matplotlib is missing, or `output` cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError(f"a report needs matplotlib: {extras.command_for('spark')}")
    try:
        own_directory.make(output, own_directory.PUBLIC)
        tables = gather(found, output / "tables", step, per_core)
        with step("pictures"):
            pictures = [_drawn(*each, output) for each in _plan(tables)]
        (output / PAGE).write_text(page(title, tables, pictures, per_core), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write to {str(output)!r}: {error.strerror}") from error
    return output / PAGE


def _plan(tables: Tables) -> list[tuple[str, str, Callable[[], Figure]]]:
    """Return name, meaning and making of each picture, in the order of the page."""
    shown, seconds = tables.shown, tables.seconds
    return [
        (
            "rates",
            "Every call counts once, when it is answered: a rendezvous is two.",
            lambda: over_time.rates(shown["rates"], shown["capacity"], seconds),
        ),
        (
            "waits",
            "A wait goes from a call's arrival at its worker to the answer. Long waits may be all right: who waits for "
            "work waits. A hand-off should be short; where it is not, a worker was busy.",
            lambda: over_time.waits(shown["waits_over_time"], seconds),
        ),
        (
            "balance",
            "A worker owns the topics of its part of the ring. Where its bar is longer than that part, it has hot "
            "topics; where its diamond is far from its bar, clients come in elsewhere and their calls are passed on.",
            lambda: shares.balance(shown["balance"]),
        ),
        (
            "heat",
            "A bright line is a hot topic, a bright area a hot time.",
            lambda: over_time.heat(shown["heat"], seconds, 2**BANDS_LOG2),
        ),
        (
            "topics",
            "A topic is on one worker. One that has more of all calls than a worker can answer is split by its users.",
            lambda: shares.topics(shown["topics"], shown["waits_of_topics"]),
        ),
        (
            "forwarding",
            "To pass a call on costs more than to answer it. Clients that know the ring go to the owner at once.",
            lambda: shares.forwarding(shown["forwarding"]),
        ),
        (
            "timeouts",
            "A probe is a call whose time is over at once. The other side is any call that could have met it.",
            lambda: shares.timeouts(shown["timeouts"]),
        ),
    ]


def _drawn(name: str, meaning: str, draw: Callable[[], Figure], output: Path) -> Picture:
    drawn = draw()
    data = io.BytesIO()
    drawn.savefig(data, format="png", dpi=style.DPI)
    (output / f"{name}.png").write_bytes(data.getvalue())
    return Picture(name, meaning, data.getvalue())
