"""`skywalker send`, `recv` and `take`: one value each, or a stream of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.forms import Form
from skywalker.cli.options import Asked, Command, argument, form_options, node_options, result, standard_input
from skywalker.errors import TimedOut
from skywalker.json_form import FormError, to_json
from skywalker.limits import DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.clients.blocking.client import Client

IN_FLIGHT: Final = 64


@click.command(short_help="Send a value to a receiver, and wait for one")
@click.argument("topic")
@click.argument("value", default="-")
@click.option("--lines", is_flag=True, help="each line of standard input is a value")
@click.option(
    "--in-flight",
    type=click.IntRange(1, 10_000),
    default=IN_FLIGHT,
    show_default=True,
    metavar="N",
    help="with --lines: values in flight at a time",
)
@click.option("--keep-going", is_flag=True, help="with --lines: go on after a value that was not delivered")
@form_options
@node_options
def send(asked: Asked, topic: str, value: str, lines: bool, in_flight: int, keep_going: bool, form: Form) -> int:
    """Send VALUE to TOPIC, and wait until somebody has it. Without VALUE, or with -, it is read from standard input.

    TOPIC and VALUE are JSON; a bare word is a string. With --lines, values are sent in order, and the first that cannot
    be delivered ends the stream. --timeout is for each value; the default is 60s.
    """
    timeout = DEFAULT_TIMEOUT_S if asked.timeout is None else asked.timeout
    where = argument(form, "TOPIC", topic)
    if lines:
        if value != "-":
            raise click.UsageError("with --lines the values come from standard input, not from VALUE")
        from skywalker.cli.stream import Stream

        with asked.junction() as junction:
            stream = Stream(
                lambda value: junction.begin("send", where, value, timeout=timeout),
                in_flight,
                keep_going,
                asked.as_json,
            )
            return stream.send(form.stream(standard_input()))
    what = _standard_input(form) if value == "-" else argument(form, "VALUE", value)
    with asked.junction() as junction:
        started = time.monotonic()
        junction.send(where, what, timeout)
        if asked.as_json:
            terminal.write(result("delivered", started))
    return exits.OK


def _receiving(command: Command) -> Command:
    for option in (
        click.option("--lines", is_flag=True, help="go on: one value a line, until interrupted"),
        click.option("--count", type=click.IntRange(1), metavar="N", help="with --lines: end after this many values"),
        click.option("--ack", is_flag=True, help="the sender waits until the value is here, not just on its way"),
        form_options,
        node_options,
    ):
        command = option(command)
    return command


_AFTERWARDS: Final = (
    "The default --timeout is 60s. With --lines it is the time to wait for the next value, by default without limit; "
    "a value sent in between waits until this command is back at the topic."
)


@click.command(short_help="Wait for a value, and print it", epilog=_AFTERWARDS)
@click.argument("topic")
@_receiving
def recv(asked: Asked, topic: str, lines: bool, count: int | None, ack: bool, form: Form) -> int:
    """Print the next value sent to TOPIC, which is JSON; a bare word is a string."""
    return _receive(asked, topic, None, lines, count, ack, form)


@click.command(short_help="Like recv, but only one of a group gets each value", epilog=_AFTERWARDS)
@click.argument("topic")
@click.option(
    "--group", default="", metavar="G", help="each value goes to one of those who take in this group  [empty]"
)
@_receiving
def take(asked: Asked, topic: str, group: str, lines: bool, count: int | None, ack: bool, form: Form) -> int:
    """Print the next value sent to TOPIC, as the one of its group that gets it. TOPIC and G are JSON or bare words."""
    named = argument(form, "--group", group) if group else ""
    return _receive(asked, topic, named, lines, count, ack, form)


def _receive(asked: Asked, topic: str, group: Any, lines: bool, count: int | None, ack: bool, form: Form) -> int:
    where = argument(form, "TOPIC", topic)
    if count is not None and not lines:
        raise click.UsageError("--count goes with --lines")
    with asked.junction(ack) as junction:
        started = time.monotonic()
        for value in _values(asked, junction, where, group, lines, count):
            if asked.as_json:
                terminal.write(result("delivered", started, value=to_json(value)))
            else:
                terminal.write(form.line(value) if lines else form.text(value))
            started = time.monotonic()
    return exits.OK


def _values(asked: Asked, junction: Client, topic: Any, group: Any, lines: bool, count: int | None) -> Iterator[Any]:
    """Yield one value, or `count` of them, or all. Raises TimedOut if it has to wait for too long."""
    if not lines:
        timeout = DEFAULT_TIMEOUT_S if asked.timeout is None else asked.timeout
        yield junction.recv(topic, timeout) if group is None else junction.take(topic, group, timeout)
        return
    for number, value in enumerate(junction.values(topic, group, asked.timeout), 1):
        yield value
        if number == count:
            return
    raise TimedOut(f"no further value came within {asked.timeout:g} s")


def _standard_input(form: Form) -> Any:
    try:
        return form.document(b"".join(standard_input()))
    except FormError as error:
        raise click.UsageError(f"standard input: {error}") from error
