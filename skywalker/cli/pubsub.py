"""`skywalker publish` and `subscribe`: one message each, or a stream of them."""

from __future__ import annotations

import base64
import contextlib
import functools
import itertools
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.credentials import Credentials, tls_options
from skywalker.cli.forms import lines as lines_of
from skywalker.cli.meetings import IN_FLIGHT
from skywalker.cli.options import Command, Told, result, standard_input, told_options
from skywalker.json_form import to_json
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_HOST, DEFAULT_PUBSUB_PORT, DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.pubsub import Broker, Message, Pending, Subscription


@dataclass(frozen=True, slots=True)
class Asked(Told):
    """The common options of both commands."""

    broker: str
    credentials: Credentials

    @contextlib.contextmanager
    def connection(self) -> Iterator[Broker]:
        """Connect to the node. With --json, an error in the block is printed as a result and ends the command."""
        # Only now: help and mistakes should be quick.
        from skywalker.pubsub.blocking.broker import connect

        with self.errors_told() as watch:
            tls = self.credentials.tls(self.broker)
            with connect(self.broker, tls=tls, connect_timeout=self.connect_timeout) as broker:
                watch.start()  # what takes time from here on is the call
                yield broker


def broker_options(command: Command) -> Command:
    """Add the options of both commands; they come as one Asked, the first argument."""

    @click.option(
        "--broker",
        metavar="ADDRESS",
        default=f"{DEFAULT_HOST}:{DEFAULT_PUBSUB_PORT}",
        envvar="SKYWALKER_BROKER",
        show_default=True,
        show_envvar=True,
        help="the node to talk to, at its port for pub/sub: host:port, or several with commas between them, and "
        "skywalkers:// in front for TLS",
    )
    @tls_options
    @told_options
    @functools.wraps(command)
    def with_options(broker: str, credentials: Credentials, timeout: float | None, as_json: bool, **rest: Any) -> int:
        return command(Asked(timeout, as_json, broker, credentials), **rest)

    return with_options


@click.command(short_help="Send a message to the subscribers of a topic")
@click.argument("topic")
@click.argument("payload", default="-")
@click.option("--lines", is_flag=True, help="each line of standard input is a message")
@click.option(
    "--in-flight",
    type=click.IntRange(1, 10_000),
    default=IN_FLIGHT,
    show_default=True,
    metavar="N",
    help="with --lines: messages on their way at a time",
)
@click.option("--keep-going", is_flag=True, help="with --lines: go on after a message that was not published")
@click.option("--hint", type=click.IntRange(0, 255), metavar="N", help="say of what type the payload is, 0 to 255")
@click.option("--compress", is_flag=True, help="send the payload compressed, if that makes it smaller")
@broker_options
def publish(
    asked: Asked,
    topic: str,
    payload: str,
    lines: bool,
    in_flight: int,
    keep_going: bool,
    hint: int | None,
    compress: bool,
) -> int:
    """Publish PAYLOAD to TOPIC, and wait until the node has acknowledged it: with nobody there it is dropped.

    Without PAYLOAD, or with -, it is read from standard input. Both are text, sent as it is. --timeout is that of each
    message, 10s unless it is given.
    """
    timeout = DEFAULT_CONTROL_TIMEOUT_S if asked.timeout is None else asked.timeout
    where = os.fsencode(topic)

    def begin(broker: Broker, message: bytes) -> Pending:
        return broker.begin(where, message, hint=hint, compress=compress, timeout=timeout)

    if lines:
        if payload != "-":
            raise click.UsageError("with --lines the messages come from standard input, not from PAYLOAD")
        from skywalker.cli.stream import Stream

        with asked.connection() as broker:
            stream = Stream(functools.partial(begin, broker), in_flight, keep_going, asked.as_json, "published")
            return stream.send(lines_of(standard_input()))
    data = b"".join(standard_input()) if payload == "-" else os.fsencode(payload)
    with asked.connection() as broker:
        started = time.monotonic()
        begin(broker, data).result()
        if asked.as_json:
            terminal.write(result("published", started))
    return exits.OK


_AFTERWARDS: Final = (
    "--timeout is 60s unless it is given; with --lines it is the time to wait for the next message, without end unless "
    "it is given. If the connection is lost, the command connects anew, and says that messages may have been missed."
)


@click.command(short_help="Print what is published to topics", epilog=_AFTERWARDS)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--lines", is_flag=True, help="go on: one message a line, until interrupted")
@click.option("--count", type=click.IntRange(1), metavar="N", help="with --lines: end after this many messages")
@click.option("--raw", is_flag=True, help="print payloads as they are, without a newline after them")
@click.option("--typed", is_flag=True, help="with --json: print hints too, which not every broker knows")
@broker_options
def subscribe(asked: Asked, topics: tuple[str, ...], lines: bool, count: int | None, raw: bool, typed: bool) -> int:
    """Print the next message that is published to one of the TOPICs, which are text."""
    for wrong, problem in (
        (count is not None and not lines, "--count goes with --lines"),
        (typed and not asked.as_json, "--typed goes with --json"),
        (raw and asked.as_json, "--raw and --json exclude each other"),
    ):
        if wrong:
            raise click.UsageError(problem)

    def on_gap(reason: str) -> None:
        if asked.as_json:
            terminal.write(result("gap", started, message=reason))

    within = DEFAULT_TIMEOUT_S if asked.timeout is None else asked.timeout
    names = map(os.fsencode, topics)
    with _warnings_said(logging.NullHandler() if asked.as_json else _Complaints()), asked.connection() as broker:
        started = time.monotonic()
        with broker.subscribe(*names, typed=typed, on_gap=on_gap, timeout=within) as messages:
            for message in _messages(asked, messages, lines, count):
                if asked.as_json:
                    terminal.write(_as_json(message, started))
                else:
                    terminal.write(message.payload if raw else message.payload.removesuffix(b"\n") + b"\n")
                started = time.monotonic()
    return exits.OK


@contextlib.contextmanager
def _warnings_said(handler: logging.Handler) -> Iterator[None]:
    """Have what the client warns of go to `handler`, and nowhere else."""
    log = logging.getLogger("skywalker.pubsub")
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


class _Complaints(logging.Handler):
    """Has what the client warns of said by the command."""

    def emit(self, record: logging.LogRecord) -> None:
        terminal.complain(record.getMessage())


def _messages(asked: Asked, messages: Subscription, lines: bool, count: int | None) -> Iterator[Message]:
    """Yield one message, or `count` of them, or all. Raises TimedOut if it has to wait for too long."""
    timeout = asked.timeout if lines or asked.timeout is not None else DEFAULT_TIMEOUT_S
    for _ in itertools.count() if lines and count is None else range(count or 1):
        yield next(messages) if timeout is None else messages.get(timeout)


def _as_json(message: Message, started: float) -> bytes:
    try:
        payload = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"base64": base64.b64encode(message.payload).decode()}
    hint = {} if message.hint is None else {"hint": message.hint}
    return result("delivered", started, topic=to_json(message.topic), **payload, **hint, size=len(message.payload))
