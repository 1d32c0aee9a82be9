"""The core by itself, beside a node as it is and an echo, on the same work: `python -m bench.core`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bench.figures.command import Findings, command, several, show_progress
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Samples, figure, measure_in_turn, table
from bench.load.plan import Load
from bench.peers import LATENCY, Case, latencies
from bench.servers import core, echo, skywalker
from bench.servers.peer import Running

SERVERS: Final = {"node": skywalker.started, "core": core.started, "echo": echo.started}
SPOKEN: Final = {"node": "skywalker", "core": "skywalker", "echo": "echo"}
"""In whose bytes each of them is spoken to."""

TARGETS: Final = {"1x64": 1_500_000, "8x64": 2_200_000}
"""Rendezvous per core-second that the core is to reach."""

OF_ECHO: Final = 0.9
"""What it is to reach of an echo with one call in flight."""

HEADS: Final = ("server", "rendezvous/s", "per core-second", "of the node", "of the echo", "server cores")


class Comparison(Samples[Case, str]):
    """The samples of all three in every case."""

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        yield from self.settings_lines()
        for case in self.cases():
            yield ""
            yield f"{case}:"
            if case == LATENCY:
                yield from latencies(self)
            else:
                yield from table(HEADS, [self._row(case, name) for name in self.servers()])
                yield self._verdict(case)

    def _row(self, case: Case, name: str) -> tuple[str, ...]:
        return (
            name,
            *(figure(self.median(case, name, each)) for each in ("rate", "rate_per_core")),
            *(figure(self.ratio(case, name, other), ".2f") for other in ("node", "echo")),
            figure(self.median(case, name, "server_cores"), ".2f"),
        )

    def _verdict(self, case: Case) -> str:
        wanted = TARGETS.get(f"{case.shape.pairs}x{case.shape.in_flight}")
        found = self.median(case, "core", "rate_per_core") if wanted else self.ratio(case, "core", "echo")
        reached = "reached" if found and found >= (wanted or OF_ECHO) else "NOT reached"
        return f"wanted: {f'{wanted:,}' if wanted else f'{OF_ECHO} of the echo'}, {reached}"

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        cases = [
            {"server": name, "case": str(case), "runs": self.runs(case, name)}
            for case in self.cases()
            for name in self.servers()
        ]
        return {"settings": self.settings, "cases": cases}


def load_of(name: str, server: Running, case: Case) -> Load:
    """Return what a case is on a server."""
    in_turn = case.mode == Mode.LOCKSTEP
    prefix = f"{case.mode}-{case.shape.pairs}x{case.shape.in_flight}"
    return Load(
        *(server.host, server.port, prefix, *case.shape),
        value_bytes=VALUE_BYTES, in_turn=in_turn, server=SPOKEN[name], timed=in_turn, strict=True,
    )  # fmt: skip


@command(runs=5, seconds=1.0, quick=0.3, json=True)
@several("--shape", "shapes", SHAPES, "Pairs x calls in flight")
def main(runs: int, seconds: float, shapes: tuple[str, ...]) -> Findings:
    """Compare what a rendezvous costs the core, a node of one worker, and an echo, the floor.

    They are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user and system.
    """
    cases = [Case(Mode.CLOSED_LOOP, shape) for name, shape in SHAPES.items() if name in shapes]
    found = Comparison(servers=[*SERVERS])
    measure_in_turn(found, SERVERS, [*cases, LATENCY], load_of, runs, seconds, show_progress)
    found.settings["value bytes"] = VALUE_BYTES
    return Findings(found.lines(), found.to_data())


if __name__ == "__main__":
    main()
