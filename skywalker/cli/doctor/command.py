"""`skywalker doctor`: the command."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from skywalker import config
from skywalker.cli import exits, terminal
from skywalker.cli.doctor.finding import Finding, Level
from skywalker.config import Config

if TYPE_CHECKING:
    from skywalker.cli.doctor.machine import Machine

Check = Callable[[Config, "Machine"], Iterator[Finding]]

PATIENCE_S: Final = 2.0
"""Seconds for all checks together: they run at once, and what hangs is told of as that."""

COLOURS: Final[dict[Level, str]] = {"ok": "32", "warn": "33", "fail": "31"}


@click.command(short_help="Check this machine")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar="SKYWALKER_CONFIG",
    help="check for a node with these settings; also SKYWALKER_CONFIG",
)
@click.option("--json", "as_json", is_flag=True, help="print all that was found as one line of JSON")
def doctor(config_file: Path | None, as_json: bool) -> int:
    """Check whether a node works on this machine, and works well, and say what to change.

    The settings are those that `skywalker serve` would find, in the file and in SKYWALKER_* variables. Nothing is
    changed. The exit status is 0 unless a check fails, then 1.
    """
    from skywalker.cli.doctor.checks import CHECKS  # only now, as all that checks: help should be quick
    from skywalker.cli.doctor.machine import Machine

    settings = config.load({}, os.environ, config_file)
    found = list(examined(CHECKS, settings, Machine(), PATIENCE_S))
    failed = any(each.level == "fail" for each in found)
    if as_json:
        checks = [
            {"name": each.name, "level": each.level, "found": each.found, "advice": each.advice} for each in found
        ]
        terminal.write(json.dumps({"ok": not failed, "checks": checks}).encode() + b"\n")
    else:
        terminal.write("".join(f"{line}\n" for line in _lines(found)).encode(errors="replace"))
    return exits.FAILED if failed else exits.OK


def examined(checks: Iterable[Check], settings: Config, machine: Machine, patience: float) -> Iterator[Finding]:
    """Yield what the checks find, in their order; one that takes longer than `patience` seconds is told of as that."""
    deadline = time.monotonic() + patience
    begun = [(check, _begin(check, settings, machine)) for check in checks]
    for check, answer in begun:
        name = check.__name__.replace("_", " ")
        try:
            found = answer.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            found = [Finding(name, "warn", f"no result within {patience:g} s", "find out what hangs, and try again")]
        if isinstance(found, Exception):
            found = [Finding(name, "warn", f"cannot be checked: {type(found).__name__}: {found}")]
        yield from found


def _begin(check: Check, settings: Config, machine: Machine) -> queue.SimpleQueue[list[Finding] | Exception]:
    """Run a check in a thread that does not keep this process from ending; what it finds, or raises, comes there."""
    answer: queue.SimpleQueue[list[Finding] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put([*check(settings, machine)])
        except Exception as error:  # whatever it is, the others have something to say
            answer.put(error)

    threading.Thread(target=run, name=check.__name__, daemon=True).start()
    return answer


def _lines(found: Sequence[Finding]) -> Iterator[str]:
    width = max(len(each.name) for each in found)
    for each in found:
        level = terminal.painted(f"{each.level:<4}", COLOURS[each.level])
        advice = f": {each.advice}" if each.advice else ""
        yield f"{level}  {each.name:<{width}}  {terminal.shown(each.found)}{terminal.shown(advice)}"
    count = {level: sum(1 for each in found if each.level == level) for level in COLOURS}
    yield f"{len(found)} checks: {count['ok']} ok, {count['warn']} to look at, {count['fail']} failed"
