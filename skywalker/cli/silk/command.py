"""The group `skywalker silk`; each of its commands is loaded when it is called, or when help lists it."""

from __future__ import annotations

from typing import Final

import click

from skywalker.cli.lazy import Lazy

_HOMES: Final = {
    "listen": "skywalker.cli.silk.listen",
    "request": "skywalker.cli.silk.request",
    "members": "skywalker.cli.silk.members",
    "watch": "skywalker.cli.silk.watch",
    "keygen": "skywalker.cli.silk.keygen",
}


@click.group(cls=Lazy, homes=_HOMES, short_help="Talk to other programs directly, with no node between")
def silk() -> None:
    """Silk is for programs that ask each other directly, in JSON over ZeroMQ: no node is in between.

    \b
      skywalker silk listen --type resize --reply '"ok"'     the first of a cluster, at 127.0.0.1:3444
      skywalker silk request resize '{"file": "a.png"}'      asks one that handles the type
      skywalker silk members                                 says who is there
      skywalker silk watch                                   says who comes, leaves and fails

    An ENDPOINT is host:port, tcp://host:port or ipc:///path; 127.0.0.1:3444 where none is given. Needs pyzmq, which
    skywalker's extra `silk` brings.

    Exit status: 0 answered or sent, 2 usage, 3 no reply, 4 nobody answers at the endpoint, 5 a node refused.
    """
