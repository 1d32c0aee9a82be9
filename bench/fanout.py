"""skywalker's pub/sub beside Redis and NATS, to 1 to 1,000 subscribers: `python -m bench.fanout`.

Publishers keep so many messages in flight, as bench.load.publications says, and every delivery to every subscriber is
counted. A server's cost is the CPU time of all its processes from before the first publish to after the last
delivery. A run measures each case on one server after the other, so that what slows the machine down for a while
falls on all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

import click

from bench.errors import BenchError
from bench.figures import machine
from bench.figures.command import Findings, command
from bench.figures.fanout import Case, Published, Report
from bench.figures.progress import show_progress
from bench.figures.samples import measure
from bench.load.plan import Load
from bench.load.run import Crew
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


def compare(
    servers: Sequence[str],
    loads: Sequence[Published],
    subscribers: Sequence[int],
    runs: int,
    seconds: float,
    progress: Callable[[str], None],
) -> Report:
    """Measure every case on every server in every run; `progress` is told in a few words what comes next.

    A load whose topics are more than the subscribers is left out. Raises BenchError, or SkywalkerError if a node
    does not start.
    """
    report = Report(servers=servers)
    cases = [Case(load, count) for load in loads for count in subscribers if count >= load.topics]
    for run in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {name: stack.enter_context(DIALECTS[name].started()) for name in servers}
            crew = stack.enter_context(Crew())
            for case in cases:
                for name, server in running.items():
                    progress(f"run {run} of {runs}: {name}, {case}")
                    try:
                        report.add(case, name, measure(load_of(name, server, case), seconds, server.pid, crew=crew))
                    except BenchError as error:
                        raise BenchError(f"{name}, {case}: {error}") from error
            report.settings |= {name: server.version + DIALECTS[name].note for name, server in running.items()}
    report.settings |= machine.settings(runs, seconds)
    return report


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
    report = compare(
        [name for name in DIALECTS if name in (servers or DIALECTS)],
        [load for name, load in LOADS.items() if name in (loads or LOADS)],
        subscribers,
        runs,
        seconds,
        show_progress,
    )
    return Findings(report.lines(), report.to_data(), {"fanout": report.markdown()})


if __name__ == "__main__":
    main()
