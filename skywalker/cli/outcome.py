"""The one place where an exception becomes an exit status and a line on standard error."""

from __future__ import annotations

from collections.abc import Sequence

import click

from skywalker.access import token
from skywalker.cli import exits, terminal
from skywalker.errors import SkywalkerError


def run(command: click.Command, arguments: Sequence[str], name: str) -> int:
    """Run a command and return its exit status; what went wrong is one line on standard error, never a traceback."""
    try:
        status = command.main(list(arguments), name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return exits.USAGE
    except (click.Abort, KeyboardInterrupt):
        return exits.INTERRUPTED
    except terminal.OutputClosed:
        terminal.end_by_sigpipe()
        return exits.FAILED
    except SkywalkerError as error:
        terminal.complain(token.masked(str(error)))
        return exits.of(error)
    return status if isinstance(status, int) else exits.OK
