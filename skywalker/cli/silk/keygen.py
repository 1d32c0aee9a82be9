"""`skywalker silk keygen`: the key pair of a cluster."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from skywalker.cli import exits, terminal
from skywalker.cli.silk.options import needing_pyzmq


@click.command(short_help="Make the key pair of a cluster")
@click.argument("file", type=click.Path(path_type=Path))
def keygen(file: Path) -> int:
    """Write a new key pair to FILE, which must not be there yet, and which only you may read.

    All nodes of a cluster have the same pair. Who has it is let in, and all that is said is encrypted.
    """
    with needing_pyzmq():
        from skywalker.silk.keys import Keys
    Keys.generate().save(file)
    terminal.write(_advice(str(file)).encode(errors="surrogateescape"))
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
