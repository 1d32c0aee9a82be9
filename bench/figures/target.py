"""The node that `skywalker-bench` tests: one that runs, or that is started for the test."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click

from bench.servers.usage import listener
from skywalker import build, embedding
from skywalker.address import Address
from skywalker.errors import SkywalkerError
from skywalker.limits import DEFAULT_ADDRESS

Command = Callable[..., Any]


class Target(NamedTuple):
    """The node under test."""

    address: Address
    words: str
    pid: int | None  # its first process, where that is known
    admin: Address | None = None  # of its admin server, if it was started with one


class _Address(click.ParamType[Address]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(value)
        except SkywalkerError as error:
            self.fail(str(error), param, ctx)


def target_options(command: Command) -> Command:
    """Add --connect, --start and --pid; the command gets a function that gives the Target as its first argument."""

    @click.option(
        "--connect",
        type=_Address(),
        default=DEFAULT_ADDRESS,
        envvar="SKYWALKER_NODE",
        show_default=True,
        show_envvar=True,
        help="the node to test",
    )
    @click.option("--start", type=click.IntRange(1, 1024), metavar="N", help="start one with N workers for it instead")
    @click.option("--pid", type=click.IntRange(1), help="the node's first process; else it is looked for by its port")
    @functools.wraps(command)
    def with_target(connect: Address, start: int | None, pid: int | None, **rest: Any) -> Any:
        if start and pid:
            raise click.UsageError("--pid is for a node that runs, and --start starts one")
        return command(target=functools.partial(target, connect, start, pid), **rest)

    return with_target


@contextlib.contextmanager
def target(address: Address, start: int | None, pid: int | None, **settings: Any) -> Iterator[Target]:
    """Start a node with `settings` if that was asked for, or look for the one at an address."""
    if start:
        with embedding.embedded(workers=start, **settings) as node:
            words = (
                f"{node.address}, {start} worker{'s' if start > 1 else ''}, {build.described()}, started for this test"
            )
            admin = Address.parse(node.admin_address) if node.admin_address else None
            yield Target(Address(node.host, node.port), words, node.pid, admin)
    else:
        yield Target(address, str(address), pid or listener(address.host, address.port))
