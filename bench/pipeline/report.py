"""How long a report takes, and how much memory: `python -m bench.pipeline.report --records 50000000`.

Calls are made up, as bench.pipeline.report says, and written as Parquet, unless they are there from an earlier run.
The report is the command `skywalker pipeline report` in a process of its own: its seconds include the start of Spark,
and its memory is the most that all its processes held at one time, looked at five times a second.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import mmh3
import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.errors import Unreachable
from bench.figures import machine
from bench.figures.command import show_progress
from bench.servers.usage import cpu_seconds, tree
from skywalker.address import Address
from skywalker.journal import rings
from skywalker.members import Member, Snapshot
from skywalker.wire import values

NODES: Final = ("red", "green", "blue")
WORKERS: Final = 2
TOKENS: Final = 32

METHODS: Final = ("send", "recv", "take", "publish")
OUTCOMES: Final = ("met", "prompt", "timed-out", "cancelled", "gone", "busy", "draining", "error")
ROUTES: Final = ("here", "sibling", "node")

FILE_RECORDS: Final = 2_000_000

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """So many calls on so many topics, over so many seconds of Unix time."""

    records: int
    topics: int = 200_000
    seconds: int = 3600
    start: int = 1_767_262_800  # s
    skew: float = 1.05  # of Zipf's law; 0 for topics that are all the same
    seed: int = 1

    def write(self, directory: Path) -> Iterator[int]:
        """Write it as `ingest` does; yield how many records are there by now. `directory` must be new or empty."""
        random = np.random.default_rng(self.seed)
        tokens = np.array([mmh3.hash64(values.pack(f"topic-{at}"))[0] for at in range(self.topics)], dtype=np.int64)
        self._write_names(directory / "names", tokens)
        ring = self._ring(random)
        (directory / "rings").mkdir(parents=True)
        (directory / "rings" / f"{ring.version}{rings.SUFFIX}").write_bytes(ring.pack())
        owned = [ring.ring.owner(token) for token in tokens.tolist()]
        owners = np.array([NODES.index(place.node) * WORKERS + place.worker for place in owned])
        weights = np.arange(1, self.topics + 1) ** -self.skew
        heat = np.cumsum(weights / weights.sum())
        files = -(-self.records // FILE_RECORDS)
        for at in range(files):
            count = self.records * (at + 1) // files - self.records * at // files
            table = self._table(random, count, at / files, (at + 1) / files, tokens, owners, heat, ring.version)
            day = np.datetime64(self.start + int(self.seconds * at / files), "s").astype("datetime64[D]")
            folder = directory / "calls" / f"date={day}"
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, folder / f"part-{at:05}.parquet")
            yield self.records * (at + 1) // files

    @staticmethod
    def _ring(random: np.random.Generator) -> Snapshot:
        shares = random.integers(-(2**63), 2**63, (len(NODES), TOKENS)).tolist()
        return Snapshot(
            Member(name, name, Address("127.0.0.1", 1 + at), WORKERS, False, tuple(sorted(shares[at])))
            for at, name in enumerate(NODES)
        )

    def _write_names(self, directory: Path, tokens: npt.NDArray[np.int64]) -> None:
        directory.mkdir(parents=True)
        # Half of the topics have their names written down, the hottest among them.
        known = max(1, self.topics // 2)
        names = [f"topic-{at}" for at in range(known)]
        table = pa.table({"node": [NODES[0]] * known, "token": tokens[:known], "topic": names})
        pq.write_table(table, directory / "part-0.parquet")

    def _table(
        self,
        random: np.random.Generator,
        count: int,
        begin: float,
        end: float,
        tokens: npt.NDArray[np.int64],
        owners: npt.NDArray[np.int64],
        heat: Floats,
        ring: str,
    ) -> pa.Table:
        moments = np.sort(begin + (end - begin) * random.random(count))
        topic = np.minimum(np.searchsorted(heat, random.random(count)), self.topics - 1)
        owner = owners[topic]
        # Half of the clients know where a topic belongs.
        place = np.where(random.random(count) < 0.5, owner, random.integers(0, len(NODES) * WORKERS, count))
        route = np.where(place == owner, 0, np.where(place // WORKERS == owner // WORKERS, 1, 2))
        method = random.choice(4, count, p=[0.45, 0.25, 0.2, 0.1])
        # A third of the way there are more senders than receivers for a while.
        rough = (moments > 0.33) & (moments < 0.4)
        outcome = random.choice(8, count, p=[0.42, 0.5, 0.07, 0.003, 0.004, 0.001, 0.001, 0.001])
        outcome = np.where(rough & (random.random(count) < 0.3), 2, outcome)
        outcome = np.where((outcome == 1) & (route > 0), 0, outcome)
        # Who publishes waits for nobody.
        outcome = np.where(method == 3, 1, outcome)
        wait = np.exp(random.normal(0, 1, count)) * np.where(outcome == 1, 40.0, 8000.0) * np.where(rough, 4, 1)
        patience = random.choice([0.0, 1e6, 5e6, 6e7], count, p=[0.3, 0.4, 0.2, 0.1])
        wait = np.where(outcome == 2, patience + random.exponential(200.0, count), wait)
        wait = np.where(outcome >= 5, 20.0, wait)
        times = ((self.start + moments * self.seconds) * 1e6).astype(np.int64)
        return pa.table(
            {
                "time": pa.array(times).view(pa.timestamp("us", tz="UTC")),
                "node": _words(place // WORKERS, NODES),
                "worker": pa.array((place % WORKERS).astype(np.int32)),
                "connection": pa.array(random.integers(0, 500, count)),
                "door": _words((method == 3).astype(np.int64), ("junction", "pubsub")),
                "method": _words(method, METHODS),
                "outcome": _words(outcome, OUTCOMES),
                "route": _words(route, ROUTES),
                "token": pa.array(tokens[topic]),
                "wait_us": pa.array(wait.astype(np.int64)),
                "size": pa.array(random.integers(1, 2000, count).astype(np.int32)),
                "sample": pa.array(np.ones(count, dtype=np.int32)),
                "ring": _words(np.zeros(count, dtype=np.int64), (ring,)),
                "source": _words(np.zeros(count, dtype=np.int64), ("node",)),
            }
        )


def _words(codes: npt.NDArray[Any], words: tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words))


PAUSE_S = 0.2


class Usage:
    """Watches what a process and all below it take."""

    def __init__(self, pid: int) -> None:
        self.peak = 0  # bytes
        self.cpu = 0.0  # seconds of all processes
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(PAUSE_S):
            with contextlib.suppress(psutil.NoSuchProcess, Unreachable):
                self.cpu = max(self.cpu, cpu_seconds(self._pid))
                self.peak = max(self.peak, sum(map(_resident, tree(self._pid))))


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def make(traffic: Traffic, directory: Path) -> None:
    """Write the calls, unless a run that asked for the same has done so."""
    mark = directory / "traffic"
    if mark.is_file() and mark.read_text() == repr(traffic):
        return
    if directory.exists() and any(directory.iterdir()):
        raise click.ClickException(f"{directory} holds something else; give an empty directory")
    for records in traffic.write(directory):
        show_progress(f"{records:,} records are made up")
    show_progress("")
    mark.write_text(repr(traffic))


def report(source: Path, output: Path) -> tuple[float, float, int]:
    """Run the command; return its seconds, those of CPU time, and the most bytes of memory. Raises ClickException."""
    command = [sys.executable, "-m", "skywalker.pipeline", "report", "--input", str(source), "--output", str(output)]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        usage = Usage(process.pid)
        status = process.wait()
        usage.end()
    seconds = time.monotonic() - started
    if status:
        raise click.ClickException(f"the report failed with status {status}")
    return seconds, usage.cpu, usage.peak


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--records", type=click.IntRange(1), default=50_000_000, help="Calls that are recorded.")
@click.option("--topics", type=click.IntRange(1), default=200_000, help="Topics that they are about.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Where the calls stay for the next run.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where the report stays.")
def main(records: int, topics: int, keep: Path | None, output: Path | None) -> None:
    """Measure a report over calls that are made up."""
    with tempfile.TemporaryDirectory() as scratch:
        source = keep or Path(scratch) / "calls"
        make(Traffic(records, topics), source)
        seconds, used, memory = report(source, output or Path(scratch) / "report")
    click.echo(f"machine  {machine.described()}, {machine.python()}")
    click.echo(f"calls    {records:,} on {topics:,} topics")
    click.echo(f"seconds  {seconds:,.1f}, {records / seconds / 1e6:.2f} M records/s")
    click.echo(f"CPU      {used:,.1f} s")
    click.echo(f"memory   {memory / 2**30:.2f} GiB at most, of all processes")


if __name__ == "__main__":
    main()
