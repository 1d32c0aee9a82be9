"""A report is made: tables, pictures, and the page that has them all, which needs no network and no script."""

from __future__ import annotations

import base64
import datetime
import html
import importlib.util
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skywalker import extras, own_directory
from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.defaults import PER_CORE
from skywalker.pipeline.report import pictures
from skywalker.pipeline.report.pictures import number_of, time_of
from skywalker.pipeline.report.tables import BANDS_LOG2, Step, Tables, gather, silent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from skywalker.pipeline.jobs.inputs import Input
    from skywalker.pipeline.report.tables import Tables


class Picture(NamedTuple):
    """A picture, and a sentence on how to read it."""

    name: str
    meaning: str
    png: bytes


_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #333a45; background: #fff; max-width: 1000px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.1em; margin: 2.2em 0 .4em; }
p { margin: .3em 0 .8em; max-width: 75ch; } .faint { color: #6b7280; }
img { max-width: 100%; border: 1px solid #eceef1; border-radius: 6px; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px; margin: 1.2em 0; }
.figures div { background: #f5f7f9; border-radius: 6px; padding: .6em .8em; }
.figures b { display: block; font-size: 1.35em; font-weight: 600; }
table { border-collapse: collapse; font-size: 13px; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: 3px 12px 3px 0; border-bottom: 1px solid #eceef1; white-space: nowrap; }
th { color: #6b7280; font-weight: 600; } .number { text-align: right; font-variant-numeric: tabular-nums; }
"""

_SHOWN: Final = {
    "topics": ("Hot topics", "The first of tables/topics, which has them all."),
    "balance": ("Balance", "Owned calls, their share, the share of the ring, and load: the share over a fair one."),
    "forwarding": ("Calls that were passed on", "Saved: the part of all CPU time that clients on the ring would save."),
    "timeouts": ("Why calls met nobody", "Share: of all that met nobody."),
    "unmatched_places": (
        "Calls that should have met",
        "Receivers that waited while a sender of their topic did, and met nobody: by the workers of both. Where their "
        "rings differ, nodes did not agree; where there are none, all is well.",
    ),
    "waits_of_workers": ("Waits by worker", "In µs."),
}

_MOST_ROWS: Final = 40


def page(title: str, tables: Tables, pictures: Sequence[Picture], per_core: float) -> Iterator[str]:
    """Yield the parts of the page."""
    shown = tables.shown
    times = shown["capacity"]["time"]
    last = times.iloc[-1] + datetime.timedelta(seconds=tables.seconds)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    yield f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{html.escape(title)}</h1>"
    yield f'<p class="faint">calls answered from {times.iloc[0]:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC</p>'
    yield '<div class="figures">'
    for name, value in _figures(tables, per_core):
        yield f"<div><b>{html.escape(value)}</b>{html.escape(name)}</div>"
    yield "</div>"
    for picture in pictures:
        data = base64.b64encode(picture.png).decode()
        yield f'<p><img alt="{picture.name}" src="data:image/png;base64,{data}"></p>'
        yield f"<p>{html.escape(picture.meaning)}</p>"
    for name, (heading, words) in _SHOWN.items():
        yield f"<h2>{html.escape(heading)}</h2><p>{html.escape(words)}</p>"
        yield from _table(shown[name])
    yield "</body></html>\n"


def _figures(tables: Tables, per_core: float) -> Iterator[tuple[str, str]]:
    shown = tables.shown
    capacity, forwarding, missed = shown["capacity"], shown["forwarding"], shown["timeouts"]
    calls = int(capacity["calls"].sum())
    yield "calls", number_of(calls)
    yield "a second, on average", number_of(calls / capacity["seconds"].sum())
    yield "in the busiest second", number_of(capacity["peak"].max())
    cores = capacity["peak"].max() / per_core
    yield f"cores for that, at {number_of(per_core)} each", f"{cores:.2g}" if cores < 10 else f"{cores:,.0f}"
    yield "workers, of all nodes", f"{len(forwarding)}"
    away = int((forwarding["to_sibling"] + forwarding["to_node"]).sum())
    yield "were passed on", f"{away / calls:.1%}"
    yield "met nobody", f"{missed['calls'].sum() / calls:.2%}"
    yield "receivers missed a sender", number_of(int(shown["unmatched_places"]["receivers"].sum()))
    waits = shown["waits_over_time"]
    prompt = waits[waits["measure"] == "hand-off"]
    if len(prompt):
        yield "the worst p99 of hand-offs", time_of(prompt["p99_us"].max())


def _table(table: pd.DataFrame) -> Iterator[str]:
    if table.empty:
        yield '<p class="faint">None.</p>'
        return
    numeric = [kind.kind in "iuf" for kind in table.dtypes]
    classes = [' class="number"' if number else "" for number in numeric]
    yield '<div class="wide"><table><tr>'
    yield "".join(f"<th{style}>{html.escape(name)}</th>" for name, style in zip(table.columns, classes, strict=True))
    yield "</tr>"
    for row in table.head(_MOST_ROWS).itertuples(index=False):
        cells = zip(table.columns, row, classes, strict=True)
        yield (
            "<tr>"
            + "".join(f"<td{style}>{html.escape(_cell(name, value))}</td>" for name, value, style in cells)
            + "</tr>"
        )
    yield "</table></div>"
    if len(table) > _MOST_ROWS:
        yield f'<p class="faint">and {len(table) - _MOST_ROWS:,} more</p>'


_PARTS: Final = ("share", "arc", "fair", "arrived_share", "forwarded", "saved", "of_all")


def _cell(name: str, value: Any) -> str:
    if value is None or value != value:
        return ""
    if name in ("token", "worker", "recv_worker", "send_worker"):
        return f"{value:.0f}" if isinstance(value, float) else str(value)
    if isinstance(value, float) and name in _PARTS:
        return f"{value:.2%}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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
            drawn = [_drawn(*each, output) for each in _plan(tables)]
        (output / PAGE).write_text("\n".join(page(title, tables, drawn, per_core)), encoding="utf-8")
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
            lambda: pictures.rates(shown["rates"], shown["capacity"], seconds),
        ),
        (
            "waits",
            "A wait goes from a call's arrival at its worker to the answer. Long waits may be all right: who waits for "
            "work waits. A hand-off should be short; where it is not, a worker was busy.",
            lambda: pictures.waits(shown["waits_over_time"], seconds),
        ),
        (
            "balance",
            "A worker owns the topics of its part of the ring. Where its bar is longer than that part, it has hot "
            "topics; where its diamond is far from its bar, clients come in elsewhere and their calls are passed on.",
            lambda: pictures.balance(shown["balance"]),
        ),
        (
            "heat",
            "A bright line is a hot topic, a bright area a hot time.",
            lambda: pictures.heat(shown["heat"], seconds, 2**BANDS_LOG2),
        ),
        (
            "topics",
            "A topic is on one worker. One that has more of all calls than a worker can answer is split by its users.",
            lambda: pictures.topics(shown["topics"], shown["waits_of_topics"]),
        ),
        (
            "forwarding",
            "To pass a call on costs more than to answer it. Clients that know the ring go to the owner at once.",
            lambda: pictures.forwarding(shown["forwarding"]),
        ),
        (
            "timeouts",
            "A probe is a call whose time is over at once. The other side is any call that could have met it.",
            lambda: pictures.timeouts(shown["timeouts"]),
        ),
    ]


def _drawn(name: str, meaning: str, draw: Callable[[], Figure], output: Path) -> Picture:
    drawn = draw()
    data = io.BytesIO()
    drawn.savefig(data, format="png", dpi=pictures.DPI)
    (output / f"{name}.png").write_bytes(data.getvalue())
    return Picture(name, meaning, data.getvalue())
