"""What a Silk cluster says to stay one, and how soon all know, by its size: `python -m bench.silk`.

Nothing is started and no real time is measured: memberships, the real ones, run in simulated time, and each message
is weighed as it goes over the wire. What is random depends on the seed alone, so that the same figures come out again.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import click

from bench.figures.command import Findings, command, show_progress
from bench.silk.simulation import DELAY_S, Network, Node, acquainted

NODES: Final = (3, 10, 100, 1000)
SEED: Final = 1

STEADY_S: Final = 10.0
DEATHS: Final = 3
PATIENCE_S: Final = 60.0
"""Seconds of simulated time after which something is not to be expected any more."""

SEEDS: Final[Mapping[str, int]] = {"1 seed": 1, "3 seeds": 3, "random seeds": 1_000_000}
"""At how many of the nodes the others join."""


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """What each node sends, on average."""

    messages: float
    bytes: float


@dataclasses.dataclass(frozen=True, slots=True)
class Storm:
    """All nodes of a cluster joining at once."""

    seconds: float  # until all know all
    traffic: Traffic  # until then


@dataclasses.dataclass(frozen=True, slots=True)
class Death:
    """One node dying."""

    seconds: float  # until it is gone everywhere
    traffic: Traffic  # besides signs of life, until all see the same again


def steady(nodes: int, seed: int) -> Traffic:
    """Return what each node sends in a second while nothing happens."""
    network, _ = acquainted(nodes, seed)
    network.run(STEADY_S)
    return _sent(network, STEADY_S * nodes)


def storm(nodes: int, seeds: int, seed: int) -> Storm:
    """Have all nodes join at once, each at one of the first `seeds` that are before it."""
    network = Network(seed)
    network.storm(nodes, seeds, seed)
    seconds = network.until(network.agree, PATIENCE_S, every=0.01)
    return Storm(seconds, _sent(network, nodes))


def deaths(nodes: int, seed: int) -> list[Death]:
    """Have some nodes die one after the other, at any moment of their periods."""
    network, members = acquainted(nodes, seed)
    return [_death(network, dead, nodes, seed) for dead in members[: min(DEATHS, nodes - 2)]]


def _death(network: Network, dead: Node, nodes: int, seed: int) -> Death:
    network.run(random.Random(f"{seed} {dead.id}").random())
    network.forget()
    network.kill(dead)
    seconds = network.until(lambda: not network.knowing(dead), PATIENCE_S)
    network.until(network.agree, PATIENCE_S)
    network.run(1.0)
    network.messages.pop("_ka")
    network.bytes.pop("_ka")
    return Death(seconds, _sent(network, nodes))


def _sent(network: Network, parts: float) -> Traffic:
    return Traffic(sum(network.messages.values()) / parts, sum(network.bytes.values()) / parts)


def steady_row(nodes: int, seed: int) -> str:
    """Return the row of the first table for so many nodes."""
    each = steady(nodes, seed)
    return (
        f"| {nodes:,} | {each.messages:,.1f} | {_bytes(each.bytes)} | {nodes * each.messages:,.0f} "
        f"| {_bytes(nodes * each.bytes)} |"
    )


def storm_row(nodes: int, seed: int, progress: Callable[[str], None]) -> str:
    """Return the row of the second table for so many nodes."""
    cells = []
    for name, seeds in SEEDS.items():
        progress(f"{nodes} nodes join at {name}")
        found = storm(nodes, seeds, seed)
        cells.append(f"{found.seconds:.2f} s, {found.traffic.messages:,.0f}, {_bytes(found.traffic.bytes)}")
    return f"| {nodes:,} | {' | '.join(cells)} |"


def death_row(nodes: int, seed: int) -> str:
    """Return the row of the third table for so many nodes."""
    found = deaths(nodes, seed)
    worst = max(found, key=lambda death: death.traffic.bytes).traffic
    seconds = sorted(death.seconds for death in found)
    return f"| {nodes:,} | {seconds[0]:.2f} to {seconds[-1]:.2f} s | {worst.messages:,.1f} | {_bytes(worst.bytes)} |"


def tables(nodes: Sequence[int], seed: int, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of all tables."""
    yield "| nodes | messages of each | bytes of each | messages of all | bytes of all |"
    yield "|---:|---:|---:|---:|---:|"
    for count in nodes:
        progress(f"{count} nodes")
        yield steady_row(count, seed)
    yield ""
    yield "Sent in a second in which nothing happens: each node says that it lives to each other one."
    yield ""
    yield f"| nodes | {' | '.join(SEEDS)} |"
    yield f"|---:|{'---:|' * len(SEEDS)}"
    for count in nodes:
        yield storm_row(count, seed, progress)
    yield ""
    yield "All nodes join at once: until all know all, and what each node sends until then, in messages and bytes."
    yield ""
    yield "| nodes | a dead node is gone after | messages of each | bytes of each |"
    yield "|---:|---:|---:|---:|"
    for count in nodes:
        progress(f"deaths among {count} nodes")
        yield death_row(count, seed)
    yield ""
    yield f"From its death until no node has it as a member, in up to {DEATHS} cases, and what each of the others sends"
    yield "about it in the worst of them."
    yield ""
    yield f"Simulated, with a keepalive of one second, up to {DELAY_S * 1000:g} ms from node to node and nothing lost"
    yield f"(seed {seed}). Bytes are those of the messages, and not of TCP beneath them."


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 100 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


@command(markdown=["traffic"])
@click.option("--nodes", default=",".join(map(str, NODES)), help="Sizes of clusters.")
@click.option("--seed", type=click.IntRange(0), default=SEED, help="What all randomness is made of.")
def main(nodes: str, seed: int) -> Findings:
    """Measure what the membership of Silk clusters sends, and how soon all know who comes and goes."""
    sizes = [int(size) for size in nodes.split(",") if size.strip().isdecimal()]
    if len(sizes) != nodes.count(",") + 1 or min(sizes) < 3:
        raise click.BadParameter("give numbers from 3 with commas between them, as 3,10", param_hint="--nodes")
    lines = list(tables(sizes, seed, show_progress))
    return Findings(lines, pages={"traffic": lines})


if __name__ == "__main__":
    main()
