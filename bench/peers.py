"""skywalker beside NATS, Redis, a ZeroMQ broker and an echo, on the same work: `python -m bench.peers`.

A rendezvous is a value that one side sends and another receives, both answered. Every server does it the fastest
way it has, over plain sockets and with frames encoded beforehand; the generator is the same for all. A run measures
each shape on one server after the other, so that what slows the machine down for a while falls on all.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence

import click

from bench.errors import BenchError
from bench.figures import machine, peers_plot
from bench.figures.command import Findings, command
from bench.figures.comparison import LATENCY, Case, Comparison
from bench.figures.progress import show_progress
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Shape, measure
from bench.load.plan import Load
from bench.load.run import Crew
from bench.servers import SERVERS


def compare(
    peers: Sequence[str], shapes: Sequence[Shape], runs: int, seconds: float, progress: Callable[[str], None]
) -> Comparison:
    """Measure every case on every server in every run; `progress` is told in a few words what comes next.

    Raises BenchError, or SkywalkerError if a node does not start.
    """
    found = Comparison(servers=peers)
    cases = [*(Case(Mode.CLOSED_LOOP, shape) for shape in shapes), LATENCY]
    for run in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {peer: stack.enter_context(SERVERS[peer].started()) for peer in peers}
            crew = stack.enter_context(Crew())
            for case in cases:
                for peer, server in running.items():
                    if case.shape.in_flight > SERVERS[peer].max_in_flight:
                        continue
                    progress(f"run {run} of {runs}: {peer}, {case}")
                    name = f"run{run}-{case.mode}-{case.shape.pairs}x{case.shape.in_flight}"
                    in_turn = case.mode == Mode.LOCKSTEP
                    load = Load(
                        *(server.host, server.port, name, *case.shape),
                        value_bytes=VALUE_BYTES, in_turn=in_turn, server=peer, timed=in_turn, strict=True,
                    )  # fmt: skip
                    try:
                        found.add(case, peer, measure(load, seconds, server.pid, crew=crew))
                    except BenchError as error:
                        raise BenchError(f"{peer}, {case}: {error}") from error
            found.settings.update({peer: server.version for peer, server in running.items()})
    found.settings.update(machine.settings(runs, seconds))
    found.settings["value bytes"] = VALUE_BYTES
    return found


@command(runs=5, seconds=2.0, quick=0.3, json=True, markdown=["peers"], plot=True)
@click.option(
    "--shape",
    "shapes",
    type=click.Choice(list(SHAPES)),
    multiple=True,
    help="Pairs x calls in flight; may be repeated.  [default: all]",
)
@click.option(
    "--peer",
    "peers",
    type=click.Choice(list(SERVERS)),
    multiple=True,
    help="A server; may be repeated.  [default: all]",
)
def main(runs: int, seconds: float, shapes: tuple[str, ...], peers: tuple[str, ...]) -> Findings:
    """Compare what a rendezvous costs skywalker, NATS, Redis, a ZeroMQ broker and an echo, the floor.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    found = compare(
        [name for name in SERVERS if name in (peers or SERVERS)],
        [SHAPES[name] for name in SHAPES if name in (shapes or SHAPES)],
        runs,
        seconds,
        show_progress,
    )
    places = {"peers": found.markdown(), "targets": found.markdown_of_targets()}
    return Findings(found.lines(), found.to_data(), places, functools.partial(peers_plot.draw, found))


if __name__ == "__main__":
    main()
