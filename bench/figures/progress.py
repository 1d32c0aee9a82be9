"""What a benchmark is at, for whoever watches it at a terminal, and why it ended early."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from bench.errors import BenchError
from skywalker.errors import SkywalkerError


def show_progress(words: str) -> None:
    """Put `words` in place of what was shown before; none to leave the line clean."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def measuring() -> Iterator[None]:
    """Leave the line clean in the end, and have what goes wrong end the command with one sentence."""
    try:
        yield
    except (BenchError, SkywalkerError) as error:
        raise click.ClickException(str(error)) from error
    finally:
        show_progress("")
