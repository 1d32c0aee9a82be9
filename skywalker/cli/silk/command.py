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
