"""skywalker beside NATS, Redis, a ZeroMQ broker and an echo, on the same work: `python -m bench.peers`.

A rendezvous is a value that one side sends and another receives, both answered. Every server does it the fastest
way it has, over plain sockets and with frames encoded beforehand; the generator is the same for all.
"""

from __future__ import annotations

import functools

import click

from bench.figures import peers_plot
from bench.figures.command import Findings, command
from bench.figures.comparison import LATENCY, Case, Comparison
from bench.figures.progress import show_progress
from bench.figures.rounds import measure_in_turn
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode
from bench.load.plan import Load
from bench.servers import SERVERS, Running


def load_of(name: str, server: Running, case: Case) -> Load | None:
    """Return what a case is on a server, None if that cannot do it."""
    if case.shape.in_flight > SERVERS[name].max_in_flight:
        return None
    in_turn = case.mode == Mode.LOCKSTEP
    prefix = f"{case.mode}-{case.shape.pairs}x{case.shape.in_flight}"
    return Load(
        *(server.host, server.port, prefix, *case.shape),
        value_bytes=VALUE_BYTES, in_turn=in_turn, server=name, timed=in_turn, strict=True,
    )  # fmt: skip


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
    servers = {name: peer.started for name, peer in SERVERS.items() if name in (peers or SERVERS)}
    cases = [Case(Mode.CLOSED_LOOP, shape) for name, shape in SHAPES.items() if name in (shapes or SHAPES)]
    found = Comparison(servers=[*servers])
    measure_in_turn(found, servers, [*cases, LATENCY], load_of, runs, seconds, show_progress)
    found.settings["value bytes"] = VALUE_BYTES
    places = {"peers": found.markdown(), "targets": found.markdown_of_targets()}
    return Findings(found.lines(), found.to_data(), places, functools.partial(peers_plot.draw, found))


if __name__ == "__main__":
    main()
