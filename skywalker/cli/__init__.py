"""The `skywalker` command. Nothing is imported before it is needed: help loads neither client nor server."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and end with its exit status."""
    status = 130
    try:
        # In here, so that Ctrl-C is quiet from the start.
        from skywalker.cli import terminal
        from skywalker.cli.commands import skywalker
        from skywalker.cli.outcome import run

        terminal.reserve_standard_descriptors()
        status = run(skywalker, sys.argv[1:], "skywalker")
    except KeyboardInterrupt:
        pass
    sys.exit(status)
