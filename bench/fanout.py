"""skywalker's pub/sub beside Redis and NATS, to 1 to 1,000 subscribers: `python -m bench.fanout`.

Publishers keep so many messages in flight, as bench.load.publications says, and every delivery to every subscriber is
counted. A server's cost is the CPU time of all its processes from before the first publish to after the last
delivery.
"""

from __future__ import annotations

from typing import Final

import click

from bench.figures.command import Findings, command
from bench.figures.fanout import Case, Published, Report
from bench.figures.progress import show_progress
from bench.figures.rounds import measure_in_turn
from bench.load.plan import Load
from bench.servers.peer import Running
from bench.servers.pubsub import DIALECTS

LOADS: Final = {
    "1x1": Published(1, 1),
    "1x64": Published(1, 64),
    "8x1": Published(8, 1),
    "8x64": Published(8, 64),
    "8x64-topics": Published(8, 64, topics=8),
    "1x64-1KiB": Published(1, 64, payload_bytes=1024),
}

SUBSCRIBERS: Final = (1, 10, 100, 1000)

PATIENCE_S: Final = 10.0


def load_of(name: str, server: Running, case: Case, patience_s: float = PATIENCE_S) -> Load:
    """Return what a case is on a server. Raises ValueError if it makes no sense."""
    publishers, in_flight, topics, payload_bytes = case.load
    return Load(
        server.host, server.port, pairs=publishers, in_flight=in_flight, topics=topics, value_bytes=payload_bytes,
        subscribers=case.subscribers, server=name, strict=True, patience_s=patience_s,
    )  # fmt: skip


@command(runs=3, seconds=0.4, quick=0.1, json=True, markdown=["fanout"])
@click.option(
    "--load",
    "loads",
    type=click.Choice(list(LOADS)),
    multiple=True,
    help="Publishers x messages in flight of each; may be repeated.  [default: all]",
)
@click.option(
    "--subscribers",
    type=click.IntRange(1, 10_000),
    multiple=True,
    default=SUBSCRIBERS,
    help="How many; may be repeated.",
)
@click.option(
    "--server",
    "servers",
    type=click.Choice(list(DIALECTS)),
    multiple=True,
    help="A server; may be repeated.  [default: all]",
)
def main(
    runs: int, seconds: float, loads: tuple[str, ...], subscribers: tuple[int, ...], servers: tuple[str, ...]
) -> Findings:
    """Compare what a delivery costs skywalker, with one worker and with two, Redis and NATS.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    running = {name: dialect.started for name, dialect in DIALECTS.items() if name in (servers or DIALECTS)}
    chosen = [load for name, load in LOADS.items() if name in (loads or LOADS)]
    # A load whose topics are more than the subscribers is left out.
    cases = [Case(load, count) for load in chosen for count in subscribers if count >= load.topics]
    report = Report(servers=[*running])
    measure_in_turn(report, running, cases, load_of, runs, seconds, show_progress)
    report.settings |= {name: report.settings[name] + DIALECTS[name].note for name in running}
    return Findings(report.lines(), report.to_data(), {"fanout": report.markdown()})


if __name__ == "__main__":
    main()
