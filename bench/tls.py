"""What TLS and access control cost a node: `python -m bench.tls`.

Four nodes of one worker stand side by side: with and without TLS, and each with and without
`[access]`, whose clients then say a token. They get the same loads one after the other, so that
what slows the machine down for a while does not fall on one of them alone. What is counted is the
CPU time of a node: that of the generator, which encrypts as much, is not in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.errors import BenchError
from bench.figures import machine
from bench.figures.command import Findings, command, show_progress
from bench.figures.samples import Samples, Shape, markdown, measure
from bench.figures.targets import Target
from bench.load.dial import contact
from bench.load.plan import Load
from bench.servers.usage import cpu_seconds
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


class Work(NamedTuple):
    """What a node is given to do."""

    shape: Shape
    value_bytes: int

    def __str__(self) -> str:
        size = self.value_bytes
        return f"{self.shape}, {f'{size // 1024} KiB' if size >= 1024 else f'{size} bytes'}"


LOADS: Final = tuple(Work(shape, size) for shape in (Shape(1, 64), Shape(32, 1)) for size in (16, 16 * 1024))

WANTED: Final = 0.9
"""The part of the rate of the plain node that is wanted of the one with access by token, of the first of them."""

CONNECTIONS: Final = "connections"
"""Not a load: one after the other is made, greeted with :hello, and closed. With TLS that is mostly the handshake."""

WORK: Final[tuple[Work | str, ...]] = (*LOADS, CONNECTIONS)

LEAST_CPU_S: Final = 0.1
"""What connections must have cost before it counts: ten times as much as the kernel tells apart."""


class Found(NamedTuple):
    """What one run found: rendezvous, or connections, per core-second of the node."""

    rate_per_core: float


@contextlib.contextmanager
def nodes() -> Iterator[dict[Kind, tuple[int, Load]]]:
    """Run a node of each kind; yield its process, and a load by which it is reached and that does next to nothing.

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
            reached[kind] = (
                node.pid,
                Load(
                    *(node.host, node.port, TOPICS, 1, 1),
                    ca=str(ca) if kind.tls else "",
                    token=secret if kind.access else "",
                    timed=False,
                    strict=True,
                ),
            )
        yield reached


def bench(runs: int, seconds: float, progress: Callable[[str], None]) -> Samples[Work | str, Kind]:
    """Measure everything in every run. Raises BenchError or SkywalkerError."""
    samples: Samples[Work | str, Kind] = Samples()
    for run in range(1, runs + 1):
        with nodes() as reached:
            for what, (kind, (pid, least)) in itertools.product(WORK, reached.items()):
                progress(f"run {run} of {runs}: {kind}, {what}")
                if isinstance(what, Work):
                    load = dataclasses.replace(least, **what.shape._asdict(), value_bytes=what.value_bytes)
                    samples.add(what, kind, measure(load, seconds, pid))
                else:
                    samples.add(what, kind, Found(connections_per_core(pid, least, seconds)))
    return samples


def connections_per_core(server: int, load: Load, seconds: float) -> float:
    """Return how many connections per core-second of its own the server takes. Raises BenchError."""
    made = 0
    began, until = cpu_seconds(server), time.monotonic() + seconds
    while time.monotonic() < until or cpu_seconds(server) - began < LEAST_CPU_S:
        contact(load).link.close()
        made += 1
    return made / (cpu_seconds(server) - began)


def table(samples: Samples[Work | str, Kind]) -> Iterator[str]:
    """Yield the lines of a Markdown table. In parentheses: of what the plain node does in the same run."""
    rows = []
    for kind in KINDS:
        rates = [(samples.median(what, kind, "rate_per_core") or 0.0) / 1000 for what in WORK]
        ratios = [samples.ratio_by_run(what, kind, PLAIN) for what in WORK]
        rows.append([str(kind), *(f"{rate:,.1f} k ({ratio:.2f})" for rate, ratio in zip(rates, ratios, strict=True))])
    yield from markdown(["", *map(str, WORK)], rows)


@command(runs=5, seconds=2.0, quick=0.3, markdown=["tls"])
def main(runs: int, seconds: float) -> Findings:
    """Measure what TLS and access control cost. Nodes are started for it, on free ports, and stopped.

    Needs the package cryptography, which skywalker's extra `certs` brings.
    """
    samples = bench(runs, seconds, show_progress)
    made = machine.settings(runs, seconds)
    words = (
        "Thousands of rendezvous, or of connections, per core-second of the node; in parentheses, of the plain node's"
    )
    lines = [*table(samples), "", f"{words}; {made['method']}, one worker; {made['machine']}."]
    ratio = samples.ratio_by_run(LOADS[0], Kind(tls=False, access=True), PLAIN)
    target = Target(f"{LOADS[0]}, access by token: per core-second, of open", ratio, WANTED)
    return Findings(lines, pages={"tls": lines}, targets=[target])


if __name__ == "__main__":
    main()
