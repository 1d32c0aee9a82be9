"""What TLS and access control cost a node: `python -m bench.tls`.

Four nodes of one worker stand side by side: with and without TLS, and each with and without
`[access]`, whose clients then say a token. They get the same loads one after the other, so that
what slows the machine down for a while does not fall on one of them alone. What is counted is the
CPU time of a node: that of the generator, which encrypts as much, is not in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from bench import cpu, machine, pages
from bench.connections import Connections, greeting
from bench.errors import BenchError
from bench.measure import measure
from bench.plan import Mode, Plan
from bench.progress import measuring, show_progress
from bench.report import Shape
from skywalker import extras
from skywalker.access import token
from skywalker.embedding import embedded

HOST: Final = "127.0.0.1"

TOPICS: Final = "tls-"
"""What all topics begin with, and are allowed by."""


class Kind(NamedTuple):
    """A node: whether it speaks TLS, and whether it wants to know who is calling."""

    tls: bool
    access: bool

    def __str__(self) -> str:
        return ("TLS 1.3" if self.tls else "plain") + (", access by token" if self.access else "")


KINDS: Final = tuple(Kind(tls, access) for tls in (False, True) for access in (False, True))
PLAIN: Final = KINDS[0]


class Load(NamedTuple):
    """What a node is given to do."""

    shape: Shape
    value_bytes: int

    def __str__(self) -> str:
        size = self.value_bytes
        return f"{self.shape}, {f'{size // 1024} KiB' if size >= 1024 else f'{size} bytes'}"


LOADS: Final = tuple(Load(shape, size) for shape in (Shape(1, 64), Shape(32, 1)) for size in (16, 16 * 1024))

CONNECTIONS: Final = "connections"
"""Not a load: one after the other is made, greeted with :hello, and closed. With TLS that is mostly the handshake."""

WORK: Final[tuple[Load | str, ...]] = (*LOADS, CONNECTIONS)

LEAST_CPU_S: Final = 0.1
"""What connections must have cost before it counts: ten times as much as the kernel tells apart."""

Samples = dict[tuple[Kind, Load | str], list[float]]
"""Rendezvous, or connections, per core-second of the node, of every run."""


@contextlib.contextmanager
def nodes() -> Iterator[dict[Kind, tuple[int, Plan]]]:
    """Run a node of each kind; yield its process, and a plan by which it is reached and that does nothing yet.

    Raises SkywalkerError if one does not start, BenchError if there is nothing to make certificates with.
    """
    if extras.missing(extras.CERTS):
        raise BenchError(f"the package cryptography is not there: {extras.command_for('certs')}")
    from skywalker.tls.authority import Authority  # only now: it is not always there

    secret = token.new()
    authority = Authority.new(days=1)
    pair = authority.for_node([HOST], days=1)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skywalker-bench-")))
        ca, cert, key, access = (directory / name for name in ("ca.pem", "node.pem", "node.key", "access.toml"))
        ca.write_bytes(authority.pair().certificate)
        cert.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        may = f'["{TOPICS}*"]'
        access.write_text(f'[access.bench]\ntoken = "{token.hash_of(secret)}"\nsend = {may}\nrecv = {may}\n')
        reached = {}
        for kind in KINDS:
            settings: dict[str, Any] = {"tls_cert": str(cert), "tls_key": str(key)} if kind.tls else {}
            node = stack.enter_context(embedded(config_file=access if kind.access else None, **settings))
            plan = Plan(
                Mode.CLOSED_LOOP,
                node.host,
                node.port,
                TOPICS,
                *(1, 1),
                ca=str(ca) if kind.tls else "",
                token=secret if kind.access else "",
            )
            reached[kind] = node.pid, plan
        yield reached


def bench(runs: int, seconds: float, progress: Callable[[str], None]) -> Samples:
    """Measure everything in every run. Raises BenchError or SkywalkerError."""
    samples: Samples = {(kind, what): [] for what in WORK for kind in KINDS}
    for run in range(1, runs + 1):
        with nodes() as reached:
            for kind, what in samples:
                progress(f"run {run} of {runs}: {kind}, {what}")
                pid, plan = reached[kind]
                if isinstance(what, Load):
                    pairs, in_flight = what.shape
                    plan = dataclasses.replace(plan, pairs=pairs, in_flight=in_flight, value_bytes=what.value_bytes)
                    samples[kind, what].append(measure(pid, plan, seconds).rate_per_core)
                else:
                    samples[kind, what].append(connections_per_core(pid, plan, seconds))
    return samples


def connections_per_core(server: int, plan: Plan, seconds: float) -> float:
    """Return how many connections per core-second of its own the server takes. Raises BenchError."""
    made = 0
    began, until = cpu.seconds(server), time.monotonic() + seconds
    while time.monotonic() < until or cpu.seconds(server) - began < LEAST_CPU_S:
        with Connections() as connections:
            connections.connect(plan, greeting())
        made += 1
    return made / (cpu.seconds(server) - began)


def table(samples: Samples) -> Iterator[str]:
    """Yield the lines of a Markdown table. In parentheses: of what the plain node does in the same run."""
    yield f"| | {' | '.join(map(str, WORK))} |"
    yield f"|---|{'---:|' * len(WORK)}"
    for kind in KINDS:
        cells = []
        for what in WORK:
            found, plain = samples[kind, what], samples[PLAIN, what]
            of_plain = statistics.median(one / base for one, base in zip(found, plain, strict=True))
            cells.append(f"{statistics.median(found) / 1000:,.1f} k ({of_plain:.2f})")
        yield f"| {kind} | {' | '.join(cells)} |"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=5, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option("--quick", is_flag=True, help="One run of 0.3 seconds each: shows that it works, not how fast.")
@click.option("--markdown", type=click.Path(path_type=Path), multiple=True, help="Also put the table into a page.")
def main(runs: int, seconds: float, quick: bool, markdown: tuple[Path, ...]) -> None:
    """Measure what TLS and access control cost. Nodes are started for it, on free ports, and stopped.

    Needs the package cryptography, which skywalker's extra `certs` brings.
    """
    if quick:
        runs, seconds = 1, 0.3
    with measuring():
        for page in markdown:
            pages.split(page, "tls")  # raises for one without a place for the table, before all the work
        samples = bench(runs, seconds, show_progress)
    made = machine.settings(runs, seconds)
    words = (
        "Thousands of rendezvous, or of connections, per core-second of the node; in parentheses, of the plain node's"
    )
    lines = [*table(samples), "", f"{words}; {made['method']}, one worker; {made['machine']}."]
    click.echo("\n".join(lines))
    for page in markdown:
        pages.put(page, "tls", lines)


if __name__ == "__main__":
    main()
