"""The command: a node, a real file, and a pool of takers, on one screen. Leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from skywalker.cli import exits
from skywalker.cli.demo.screen import Screen
from skywalker.limits import DEFAULT_PORT, DEFAULT_PUBSUB_PORT

if TYPE_CHECKING:
    from skywalker.embedding import Node

ADDRESS_TAKEN: Final = 6
"""With which status a node ends that cannot have its port."""

FILES: Final = (
    "/usr/share/common-licenses/GPL-3",
    "/usr/share/dict/words",
    "/usr/share/perl/5/pod/perl.pod",
    os.__file__,
)
"""Text that is on most machines; the last one is wherever Python is."""


@click.command(short_help="Watch a node at work")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=6.0, metavar="N", help="how long to send")
def demo(file: Path | None, seconds: float) -> int:
    """Start a node with one worker for each core, and send the lines of FILE through it, over and over for 6 seconds.

    The lines go through topics to a pool of takers in other processes. In the end, what arrived is compared with what
    was sent; a line that was lost makes the exit status 1. Without FILE, some text is found on this machine.
    """
    file = text(file)
    screen = Screen()
    with _node(screen) as node:
        return _demonstrate(node, file, seconds, screen)


def text(file: Path | None) -> Path:
    """Return the file whose lines are sent: the one that was named, or one that is there. Raises UsageError."""
    file = file or next(path for path in map(Path, FILES) if path.is_file())
    if not file.stat().st_size:
        raise click.UsageError(f"{file} is empty; the demo needs lines to send")
    return file


@contextlib.contextmanager
def _node(screen: Screen) -> Iterator[Node]:
    from skywalker.embedding import StartError, start

    screen.title("skywalker demo")
    with contextlib.ExitStack() as stack:
        # A node uses its state directory only as it starts; gone by then, none outlives a demo that is killed later.
        with ctrl_c_waits(), tempfile.TemporaryDirectory(prefix="skywalker-demo-") as state_dir:
            note = ""
            try:
                node = start(port=DEFAULT_PORT, pubsub_port=DEFAULT_PUBSUB_PORT, workers=0, state_dir=state_dir)
            except StartError as error:
                if error.status != ADDRESS_TAKEN:
                    raise
                usual = f"{DEFAULT_PORT} or {DEFAULT_PUBSUB_PORT}"
                note = f"port {usual} is taken by another program, so these are free ones"
                node = start(port=0, pubsub_port=0, workers=0, state_dir=state_dir)
            stack.callback(node.stop)
        try:
            screen.node(node.address, node.pubsub_address, len(node.worker_pids()), note)
            yield node
        finally:
            with ctrl_c_waits():
                stack.close()


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Raise KeyboardInterrupt only after the block, in which things are made or cleared away that must not remain."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        # Also in place of an error: a node that is just being forked hears the same Ctrl-C, and does not start.
        if pressed:
            raise KeyboardInterrupt


def _demonstrate(node: Node, file: Path, seconds: float, screen: Screen) -> int:
    # Only now: help reads this file too.
    from skywalker.cli.demo.run import IN_FLIGHT, TOPICS, Comparison, Progress, run

    takers = min(4, max(2, os.cpu_count() or 1))
    screen.route(file, TOPICS, takers, IN_FLIGHT)
    progress = Progress(seconds)
    try:
        receipts = run(node.address, file, takers, progress, screen.progress, screen.pause)
    finally:
        screen.progress_done(progress)
    comparison = Comparison.of(progress, receipts)
    screen.outcome(progress, receipts, comparison)
    return exits.OK if comparison.good else exits.FAILED
