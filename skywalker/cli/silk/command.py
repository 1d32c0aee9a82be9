"""The group `skywalker silk`, of which each command is loaded when it is called or listed; and its `keygen`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.lazy import Lazy

_HOMES: Final = {
    "listen": "skywalker.cli.silk.listen",
    "request": "skywalker.cli.silk.request",
    "members": "skywalker.cli.silk.members",
    "watch": "skywalker.cli.silk.members",
    "keygen": "skywalker.cli.silk.command",
}


@click.group(cls=Lazy, homes=_HOMES, short_help="Talk to other programs directly, without a node")
def silk() -> None:
    """With Silk, programs send each other requests directly, in JSON over ZeroMQ, without a node in between.

    \b
      skywalker silk listen --type resize --reply '"ok"'     the first of a cluster, at 127.0.0.1:3444
      skywalker silk request resize '{"file": "a.png"}'      asks one that handles the type
      skywalker silk members                                 prints the members
      skywalker silk watch                                   prints who joins, leaves and fails

    An ENDPOINT is host:port, tcp://host:port or ipc:///path; the default is 127.0.0.1:3444. Needs pyzmq, which
    skywalker's extra `silk` installs.

    Exit status: 0 answered or sent, 2 usage, 3 no reply, 4 nobody answers at the endpoint, 5 a node refused.
    """


@click.command(short_help="Make the key pair of a cluster")
@click.argument("file", type=click.Path(path_type=Path))
def keygen(file: Path) -> int:
    """Write a new key pair to FILE, which must not be there yet, and which only you may read.

    All nodes of a cluster have the same pair. Who has it is let in, and all that is said is encrypted.
    """
    from skywalker.cli.silk.options import needing_pyzmq  # only now: `skywalker --help` reads this file too

    with needing_pyzmq():
        from skywalker.silk.keys import Keys
    Keys.generate().save(file)
    terminal.say(_advice(str(file)))
    return exits.OK


def _advice(file: str) -> str:
    return (
        f"{file} holds the key pair of a cluster. Whoever has it is let in, so keep it secret (mode 0600).\n"
        "Copy it to every machine of the cluster, and give it to every node there:\n"
        "\n"
        f"  skywalker silk listen --type T --keys {shlex.quote(file)}\n"
        f"  skywalker serve --silk HOST:3444 --silk-keys {shlex.quote(file)}\n"
        f"  silk.Node(keys={file!r})\n"
    )
