"""What the commands of Silk have in common: how data is written, who the node is, whom it joins, how it leaves."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker import extras
from skywalker.cli import exits, terminal
from skywalker.cli.options import Command, Told, told_options
from skywalker.errors import ConfigError, HandlerFailed, LocalProtocolError, NobodyHandles, NoSuchNode, SkywalkerError
from skywalker.json_form import FormError, Unprintable
from skywalker.limits import DEFAULT_HOST, DEFAULT_SILK_PORT
from skywalker.wire.silk import FAILED, UNKNOWN_TYPE

if TYPE_CHECKING:
    from skywalker.silk.blocking import Node

_CODES: Final = {NobodyHandles: UNKNOWN_TYPE, HandlerFailed: FAILED, NoSuchNode: "no-such-node"}
"""What scripts can tell refusals by."""


def read(data: bytes) -> Any:
    """Return what some text stands for. Raises FormError."""
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise FormError("it is not UTF-8, as JSON is") from None
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise FormError("it is nested too deeply") from None
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise FormError(f"it looks like JSON but is none ({error})") from None
        return text


def argument(name: str, text: str) -> Any:
    """Return what an argument of the command line stands for. Raises UsageError."""
    try:
        return read(os.fsencode(text))
    except FormError as error:
        raise click.UsageError(f"{name} {text!r}: {error}") from error


def printed(data: Any) -> bytes:
    """Return data as a line. Raises Unprintable."""
    try:
        return terminal.json_line(data)
    except RecursionError:
        raise Unprintable("the data is nested too deeply to be printed") from None


def result(status: str, started: float, **fields: Any) -> bytes:
    """Return the line for scripts; `started` is when it began, on the monotonic clock."""
    return printed({"status": status, **fields, "ms": round((time.monotonic() - started) * 1000, 3)})


def failed(error: SkywalkerError, started: float, **fields: Any) -> bytes:
    """Return the line for scripts about something that failed."""
    code = next((code for cls, code in _CODES.items() if isinstance(error, cls)), None)
    return result(exits.word(error), started, **fields, **({"code": code} if code else {}), message=str(error))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


JOIN_S: Final = 5.0
"""Seconds in which somebody must answer at the endpoint that is joined, unless told otherwise."""

MOMENT_S: Final = 0.3
"""Seconds for a member that has just learned of this node to listen to it, or for our last words to reach it."""

DEFAULT_ENDPOINT: Final = f"{DEFAULT_HOST}:{DEFAULT_SILK_PORT}"

SIGTERM_STATUS: Final = 128 + signal.SIGTERM


def endpoint(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return the endpoint that an option or argument stands for. Raises BadParameter."""
    from skywalker.silk.endpoints import endpoint

    try:
        return None if text is None else endpoint(text)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def key_option(command: Command) -> Command:
    """Add --keys; the command gets it as `keys`, None if it was not given."""
    return click.option(
        "--keys",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="the key pair of the cluster, if it has one; see `skywalker silk keygen`",
    )(command)


@dataclass(frozen=True, slots=True)
class SilkTold(Told):
    """The options of every command of Silk."""

    def failed(self, error: SkywalkerError, started: float) -> bytes:
        """Return the line for scripts about an error."""
        return failed(error, started)


@dataclass(frozen=True, slots=True)
class Asked(SilkTold):
    """The options of a command that is a node."""

    router: str | None
    pub: str | None
    advertise: str
    name: str
    keys: Path | None

    @property
    def join_timeout(self) -> float:
        """Seconds in which somebody must answer at the endpoint that is joined."""
        return JOIN_S if self.timeout is None else self.timeout

    def settings(self, joins: str | None) -> dict[str, Any]:
        """Return the arguments of a node that is to join there, or is the first of its cluster."""
        from skywalker.silk import endpoints

        router = self.router or f"tcp://{_own_host(joins)}:{DEFAULT_SILK_PORT if joins is None else 0}"
        pub = self.pub or endpoints.beside(router)
        return {"router": router, "pub": pub, "name": self.name, "keys": self.keys, "advertise": self.advertise}

    @contextlib.contextmanager
    def node(self, joins: str | None) -> Iterator[Node]:
        """Yield a node that joins nobody yet, and leaves at the end of the block.

        With --json, an error in the block is printed as a result and ends the command.
        """
        with self.errors_told(), ended_by_sigterm():
            # Only now: help and mistakes should be quick.
            with needing_pyzmq():
                from skywalker.silk.blocking import Node
            with contextlib.ExitStack() as stack:
                try:
                    node = stack.enter_context(Node(**self.settings(joins)))
                except ConfigError as error:
                    if joins is not None or os.strerror(errno.EADDRINUSE) not in str(error):
                        raise
                    hint = "--join the cluster of who is there, or say by --router where else to listen"
                    raise ConfigError(f"{error}: {hint}") from error
                yield node


def node_options(command: Command) -> Command:
    """Add the options of a command that is a node; they come as one Asked, the first argument."""

    @click.option("--router", metavar="ENDPOINT", callback=endpoint, help="where it takes messages")
    @click.option("--pub", metavar="ENDPOINT", callback=endpoint, help="where it broadcasts; any free port beside that")
    @click.option("--advertise", metavar="HOST", default="", help="where others reach it, if it listens at 0.0.0.0")
    @click.option("--name", metavar="NAME", default="", help="what others see it called")
    @key_option
    @told_options
    @functools.wraps(command)
    def with_options(
        router: str | None,
        pub: str | None,
        advertise: str,
        name: str,
        keys: Path | None,
        timeout: float | None,
        as_json: bool,
        **rest: Any,
    ) -> int:
        return command(Asked(timeout, as_json, router, pub, advertise, name, keys), **rest)

    return with_options


@contextlib.contextmanager
def needing_pyzmq() -> Iterator[None]:
    """Say what to do if an import in the block finds no pyzmq."""
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] != "zmq":
            raise
        raise SkywalkerError(f"Silk needs pyzmq: {extras.command_for('silk')}") from error


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end the block as Ctrl-C does, so that a node says to the others that it leaves."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(SIGTERM_STATUS)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _own_host(joins: str | None) -> str:
    """Return the address of this machine at which those at an endpoint can reach it."""
    from skywalker.silk.endpoints import address_of, is_ipv6

    there = None if joins is None else address_of(joins)
    if joins is None or there is None:
        return DEFAULT_HOST
    # By the addresses that ZeroMQ takes: not all that a name has.
    family = socket.AF_INET6 if is_ipv6(joins) else socket.AF_INET
    with contextlib.suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(there.host, there.port, family, socket.SOCK_DGRAM)
        # Nothing is sent: the kernel only says from which address it would be.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(found[0][4])
            own = str(probe.getsockname()[0])
            return f"[{own}]" if ":" in own else own
    return DEFAULT_HOST
