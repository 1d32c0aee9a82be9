"""`skywalker ping`, `hello`, `tokens` and `topic`: what a node says of itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.address import Address
from skywalker.cli import exits, terminal
from skywalker.cli.forms import Form
from skywalker.cli.options import Asked, argument, form_options, node_options, result
from skywalker.cli.terminal import aligned
from skywalker.json_form import to_json
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.clients.blocking.client import Client


@click.command(short_help="Ask whether a node answers")
@node_options
def ping(asked: Asked) -> int:
    """Ask the node whether it answers, and print how long that took."""

    def timed(junction: Client, timeout: float) -> float:
        started = time.monotonic()
        junction.ping(timeout)
        return (time.monotonic() - started) * 1000

    return _ask(asked, timed, lambda ms: f"{asked.node} answered in {ms:.2f} ms\n".encode())


@click.command(short_help="Ask a node who it is")
@node_options
def hello(asked: Asked) -> int:
    """Print what the node says of itself: name, version, workers, limits. With --json, its tokens too."""
    return _ask(asked, lambda junction, timeout: junction.hello(timeout), _card)


@click.command(short_help="Print the tokens that a node owns")
@node_options
def tokens(asked: Asked) -> int:
    """Print the tokens of the node, one a line, in ascending order."""
    return _ask(asked, lambda junction, timeout: junction.tokens(timeout), _numbers)


@click.command(short_help="Print who waits on a topic")
@click.argument("topic")
@form_options
@node_options
def topic(asked: Asked, topic: str, form: Form) -> int:
    """Print as JSON who waits on TOPIC: receivers, takers by group, senders, and the age of the oldest in ms."""
    where = argument(form, "TOPIC", topic)
    return _ask(asked, lambda junction, timeout: junction.topic(where, timeout), _document)


def _ask(asked: Asked, question: Callable[[Client, float], Any], printed: Callable[[Any], bytes]) -> int:
    with asked.junction() as junction:
        started = time.monotonic()
        answer = question(junction, DEFAULT_CONTROL_TIMEOUT_S if asked.timeout is None else asked.timeout)
        if asked.as_json:
            terminal.write(result("answered", started, value=to_json(answer)))
        else:
            terminal.write(printed(answer))
    return exits.OK


def _document(answer: Any) -> bytes:
    indent: Final = 2 if os.isatty(terminal.STDOUT) else None
    return terminal.json_line(to_json(answer), indent=indent)


def _card(answer: Mapping[str, Any]) -> bytes:
    """Return a line for each thing that is told. It is another's word: nothing has to be there, or be right."""
    told = dict(answer)
    if {"address", "port"} <= told.keys():
        told["address"] = str(Address(str(told["address"]), told.pop("port")))
    if "worker" in told:
        told["worker"] = f"{told['worker']}, who answers this"
    if isinstance(told.get("tokens"), Mapping):
        told["tokens"] = f"{sum(len(each) for each in told['tokens'].values() if isinstance(each, list)):,}, see --json"
    order = {key: number for number, key in enumerate(_FIRST)}
    known = sorted(told.items(), key=lambda row: order.get(row[0], len(order)))
    rows = [(terminal.shown(str(key)), _words(value)) for key, value in known]
    return "".join(f"{line}\n" for line in aligned(rows, [False, False])).encode(errors="replace")


_FIRST: Final = ("name", "node", "address", "version", "workers", "worker", "tokens", "ring", "steering")
"""What is told, in the order in which people want to know it; the rest comes after."""


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{terminal.shown(str(key))} {_words(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return f"{value:,}" if isinstance(value, int) else terminal.shown(str(value))


def _numbers(answer: list[int]) -> bytes:
    return "".join(f"{number}\n" for number in answer).encode()
