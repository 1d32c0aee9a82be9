"""How long a report takes, and how much memory: `python -m bench.pipeline.report --records 50000000`.

Calls are made up, as bench.pipeline.traffic says, and written as Parquet, unless they are there from an earlier run.
The report is the command `skywalker pipeline report` in a process of its own: its seconds include the start of Spark,
and its memory is the most that all its processes held at one time, looked at five times a second.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import click
import psutil

from bench.errors import Unreachable
from bench.figures import machine
from bench.figures.progress import show_progress
from bench.pipeline.traffic import Traffic
from bench.servers.usage import cpu_seconds, tree

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
