"""The micro benchmarks against a saved baseline: `python -m bench.micro save` and `compare`.

Only times are kept, and what they depend on: bench/baseline.json. A comparison fails nothing; on
another machine, or a busy one, it says little.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from bench.figures import machine
from bench.figures.samples import table
from skywalker import build

BASELINE: Final = Path(__file__).with_name("baseline.json")

NOTABLE: Final = 0.10
"""The part of its time by which a benchmark must have changed to be marked: less is the machine's mood."""


def setting() -> dict[str, Any]:
    """Return what the times depend on."""
    return {
        "python": machine.python(),
        "machine": machine.kind(),
        "compiled": build.COMPILED,
        "assertions": build.ASSERTIONS,
    }


def times(arguments: tuple[str, ...]) -> dict[str, float]:
    """Run the micro benchmarks; return the least microseconds of each. Raises ClickException if they fail."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "times.json")
        command = [sys.executable, "-m", "pytest", "bench", "--benchmark-only", "--timeout=0", "-q"]
        quiet = ["--benchmark-quiet", f"--benchmark-json={file}", "--benchmark-columns=min", *arguments]
        ran = subprocess.run([*command, *quiet], stdout=subprocess.PIPE, text=True, check=False)
        if ran.returncode:
            raise click.ClickException(f"the benchmarks failed:\n{ran.stdout}")
        found = json.loads(file.read_text())["benchmarks"]
    # The least is what the code takes; all above it is what else the machine did.
    return {each["fullname"].removeprefix("bench/"): round(each["stats"]["min"] * 1e6, 4) for each in found}


def changes(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, times before and now, and the change in words; what has changed most comes first."""
    both = [name for name in now if name in before]
    for name in sorted(both, key=lambda name: abs(now[name] / before[name] - 1), reverse=True):
        ratio = now[name] / before[name]
        mark = "" if abs(ratio - 1) < NOTABLE else "  slower" if ratio > 1 else "  faster"
        yield name, f"{before[name]:,.3f}", f"{now[name]:,.3f}", f"{ratio - 1:+.0%}{mark}"
    yield from ((name, "-", f"{now[name]:,.3f}", "new") for name in now if name not in before)
    yield from ((name, f"{before[name]:,.3f}", "-", "not run") for name in before if name not in now)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def micro() -> None:
    """Save the times of the micro benchmarks, or show what has changed since."""


@micro.command()
@click.argument("arguments", nargs=-1)
def save(arguments: tuple[str, ...]) -> None:
    """Make the baseline anew; ARGUMENTS go to pytest."""
    data = {"setting": setting(), "min_us": times(arguments)}
    BASELINE.write_text(json.dumps(data, indent=1) + "\n")
    click.echo(f"{len(data['min_us'])} times saved to {BASELINE.name}")


@micro.command()
@click.argument("arguments", nargs=-1)
def compare(arguments: tuple[str, ...]) -> None:
    """Show the baseline and the times of now; ARGUMENTS go to pytest."""
    if not BASELINE.is_file():
        raise click.ClickException("there is no baseline yet; make bench-save makes one")
    data = json.loads(BASELINE.read_text())
    here = setting()
    for name, value in data["setting"].items():
        if value != here[name]:
            click.echo(f"{name}: {value} before, {here[name]} now")
    rows = list(changes(data["min_us"], times(arguments)))
    for line in table(("benchmark", "before us", "now us", "change"), rows):
        click.echo(line)


if __name__ == "__main__":
    micro()
