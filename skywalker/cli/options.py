"""What the commands that talk to a node have in common: their options, and how they tell the outcome."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from skywalker import units
from skywalker.address import UNIX
from skywalker.cli import exits, terminal
from skywalker.cli.credentials import Credentials, credential_options, hinted
from skywalker.cli.forms import Form, Json, MessagePack, Raw
from skywalker.errors import SkywalkerError
from skywalker.json_form import FormError
from skywalker.limits import DEFAULT_ADDRESS, KIB, MAX_TIMEOUT_MS

if TYPE_CHECKING:
    from skywalker.clients.blocking.client import Client

CONNECT_S: Final = 5.0
"""Seconds in which a node must accept the connection, or less if the call's own time is shorter: as many as connect()
has, since one that was just started may need some."""

Command = Callable[..., int]


def seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the seconds that an option such as 500ms stands for; None if it was not given. Raises BadParameter."""
    if text is None:
        return None
    try:
        value = units.duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    if value * 1000 > MAX_TIMEOUT_MS:
        raise click.BadParameter(f"{text!r} is longer than a day", ctx, param)
    return value


class Stopwatch:
    """Knows when something began: by now it does."""

    __slots__ = ("started",)

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """It begins only now."""
        self.started = time.monotonic()


@dataclass(frozen=True, slots=True)
class Told:
    """The options of every command that talks to a node."""

    timeout: float | None  # seconds; None if not given
    as_json: bool

    @property
    def connect_timeout(self) -> float:
        """Seconds in which a node must accept the connection."""
        return min(self.timeout or CONNECT_S, CONNECT_S)

    @contextlib.contextmanager
    def errors_told(self) -> Iterator[Stopwatch]:
        """With --json, an error in the block is printed as a result and ends the command.

        How long it took is counted from the last start of what the block is given.
        """
        watch = Stopwatch()
        try:
            yield watch
        except SkywalkerError as caught:
            error = hinted(caught)
            if not self.as_json:
                raise error from caught
            terminal.write(self.failed(error, watch.started))
            raise click.exceptions.Exit(exits.of(error)) from caught

    def failed(self, error: SkywalkerError, started: float) -> bytes:
        """Return the line for scripts about an error; `started` is when the call began, on the monotonic clock."""
        return failed(error, started)


def told_options(command: Command) -> Command:
    """Add --timeout and --json; the command gets them as `timeout`, in seconds, and `as_json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="print the outcome as one line of JSON"),
        click.option("--timeout", callback=seconds, metavar="TIME", help="how long to wait: 500ms, 5s, 2m or seconds"),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Asked(Told):
    """The common options of one command."""

    node: str
    dialect: Literal["current", "first"]
    credentials: Credentials

    @contextlib.contextmanager
    def junction(self, ack: bool = False, connect_timeout: float | None = None) -> Iterator[Client]:
        """Connect to the node. With --json, an error in the block is printed as a result and ends the command.

        `connect_timeout` is for a command that waits until there is a node.
        """
        patience = self.connect_timeout if connect_timeout is None else connect_timeout
        with (
            self.errors_told() as watch,
            self.connect(self.node, dialect=self.dialect, ack=ack, connect_timeout=patience) as junction,
        ):
            watch.start()  # what takes time from here on is the call
            yield junction

    def connect(self, where: str, **options: Any) -> Client:
        """Connect to a node of the cluster, as who we are; the options are those of skywalker.connect().

        Raises as that does, and ConfigError for what is in a file.
        """
        # Only now: help and mistakes should be quick.
        from skywalker.clients.blocking.client import connect

        # Over the socket of a node's own machine there is no TLS.
        tls = None if where.lower().startswith(UNIX) else self.credentials.tls(self.node)
        return connect(where, token=self.credentials.token, tls=tls, **options)


def result(status: str, started: float, **fields: Any) -> bytes:
    """Return the line for scripts; `started` is when the call began, on the monotonic clock."""
    line = {"status": status, **fields, "ms": round((time.monotonic() - started) * 1000, 3)}
    # Half a surrogate pair, which is no UTF-8, is escaped as JSON does it.
    return terminal.json_line(line)


def failed(error: SkywalkerError, started: float, **fields: Any) -> bytes:
    """Return the line for scripts about a call that failed."""
    code = getattr(error, "code", None)
    return result(exits.word(error), started, **fields, **({"code": code} if code else {}), message=str(error))


def node_options(command: Command) -> Command:
    """Add the options of every command that talks to a node; they come as one Asked, the first argument."""

    @click.option(
        "--node",
        metavar="ADDRESS",
        default=DEFAULT_ADDRESS,
        envvar="SKYWALKER_NODE",
        show_default=True,
        show_envvar=True,
        help="the node to talk to: host:port, skywalkers://host:port for TLS, unix:///path",
    )
    @click.option(
        "--dialect",
        type=click.Choice(["current", "first"]),
        default="current",
        help="the dialect to speak; first is for nodes that know only the first one",
    )
    @credential_options
    @told_options
    @functools.wraps(command)
    def with_options(
        node: str,
        dialect: Literal["current", "first"],
        credentials: Credentials,
        timeout: float | None,
        as_json: bool,
        **rest: Any,
    ) -> int:
        return command(Asked(timeout, as_json, node, dialect, credentials), **rest)

    return with_options


def form_options(command: Command) -> Command:
    """Add --raw and --msgpack; the command gets them as `form`."""

    @click.option("--raw", is_flag=True, help="topic and value are text, or bytes where they are not UTF-8")
    @click.option("--msgpack", is_flag=True, help="topic and value are MessagePack; arguments in hexadecimal")
    @functools.wraps(command)
    def with_form(*args: Any, raw: bool, msgpack: bool, **rest: Any) -> int:
        if raw and msgpack:
            raise click.UsageError("--raw and --msgpack exclude each other")
        form: Form = Raw() if raw else MessagePack() if msgpack else Json()
        return command(*args, form=form, **rest)

    return with_form


def argument(form: Form, name: str, text: str) -> Any:
    """Return the value that an argument of the command line stands for. Raises UsageError."""
    try:
        return form.argument(os.fsencode(text))
    except FormError as error:
        raise click.UsageError(f"{name} {text!r}: {error}") from error


def standard_input() -> Iterator[bytes]:
    """Yield what standard input has, as it comes."""
    while True:
        try:
            chunk = os.read(0, 64 * KIB)
        except OSError as error:
            raise click.UsageError(f"cannot read standard input: {error.strerror}") from error
        if not chunk:
            return
        yield chunk
