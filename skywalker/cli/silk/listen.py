"""`skywalker silk listen`: a node that handles messages by printing them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import queue
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from skywalker.cli import exits, terminal
from skywalker.cli.silk.options import MOMENT_S, Asked, argument, endpoint, node_options, printed, result
from skywalker.errors import SkywalkerError

if TYPE_CHECKING:
    from concurrent.futures import Future


class Inbox:
    """Has the main thread print what the handlers get in theirs: it can be interrupted while it does."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lines: queue.SimpleQueue[tuple[bytes, Future[None]]] = queue.SimpleQueue()
        self._waiting_since = time.monotonic()
        self._lock = threading.Lock()
        self._is_open = False

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Take messages until the end of the block; who waits then is told that nobody prints any more."""
        self._is_open = True
        try:
            yield
        finally:
            with self._lock:
                self._is_open = False
            while not self._lines.empty():
                self._lines.get()[1].set_exception(_ended())

    def handle(self, type: str, reply: Any, data: Any) -> Any:
        """Return the reply to a message, once that is printed."""
        line = result("delivered", self._waiting_since, type=type, value=data) if self._as_json else printed(data)
        from concurrent.futures import Future  # only now: help should be quick

        shown: Future[None] = Future()
        with self._lock:
            if not self._is_open:
                raise _ended()
            self._lines.put((line, shown))
        shown.result()
        return reply

    def print_next(self) -> None:
        """Wait for a message, and print it."""
        line, printed = self._lines.get()
        try:
            terminal.write(line)
        except BaseException:
            printed.set_exception(_ended())
            raise
        printed.set_result(None)
        self._waiting_since = time.monotonic()


def _ended() -> SkywalkerError:
    return SkywalkerError("the listener has ended, and has not printed this")


def _reply(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    return None if text is None else argument("--reply", text)


@click.command(short_help="Handle messages by printing them")
@click.option("--type", "types", multiple=True, required=True, metavar="TYPE", help="what to handle; may be repeated")
@click.option("--join", metavar="ENDPOINT", callback=endpoint, help="where a member of the cluster is")
@click.option("--reply", metavar="JSON", callback=_reply, help="what to reply to who asks; null unless it is given")
@click.option("--count", type=click.IntRange(1), metavar="N", help="end after this many messages")
@node_options
def listen(asked: Asked, types: tuple[str, ...], join: str | None, reply: Any, count: int | None) -> int:
    """Be a node that handles messages of the TYPEs: the data of each is printed as a line of JSON, and replied to.

    Without --join it is the first of a cluster, and takes messages at 127.0.0.1:3444; with it, at any free port. Where
    others can join it is said on standard error. It goes on until interrupted. --timeout is how long somebody may take
    to answer where it joins, 5s unless it is given.
    """
    inbox = Inbox(asked.as_json)
    with asked.node(join) as node, inbox.open():
        for type in types:
            node.handle(type, functools.partial(inbox.handle, type, reply))
        if join is not None:
            node.join(join, asked.join_timeout)
        if asked.as_json:
            terminal.write(printed({"status": "listening", "node": node.info.as_map()}))
        else:
            click.echo(f"listening at {node.info.router}, where others can join", err=True)
        for _ in itertools.count() if count is None else range(count):
            inbox.print_next()
        time.sleep(MOMENT_S)
    return exits.OK
