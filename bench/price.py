"""What a byte that a client sends costs a worker: `python -m bench.price`, for each kind of message that may be dear.

One connection sends messages of one kind and nothing else, in pieces that a worker reads at once, each of which is
answered before the next is sent. What counts is the CPU time of the worker, user and system, by the bytes it was sent.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

from bench.errors import BenchError
from bench.figures.samples import table
from skywalker.address import Address
from skywalker.embedding import embedded
from skywalker.limits import KIB, MAX_TOPIC
from skywalker.wire import junction as wire
from skywalker.wire import pubsub
from skywalker.wire.values import pack

PIECE: Final = 48 * KIB
"""Bytes: less than a worker reads at once."""

CROWD: Final = 10_000
"""Groups, or subscriptions, of the topic that is asked for: as many as one connection may have."""

PATIENCE_S: Final = 30.0

LONG: Final = 600_000
"""Milliseconds that those wait."""

FRIEND: Final = "127.0.0.1"
STRANGER: Final = "127.0.0.2"
"""Where those come from whom the node knows, and does not."""

ACCESS: Final = f"""
[access.friend]
network = "{FRIEND}"
send = ["*"]
recv = ["*"]
publish = ["*"]
subscribe = ["*"]
"""


LAST: Final = "the last"
"""The id of what is asked behind them."""


class Kind(NamedTuple):
    """A message that is sent again and again."""

    said: bytes
    is_published: bool = False
    """Whether it is of the pub/sub dialect."""
    before: bytes = b""
    """What another connection has said, and goes on waiting for."""
    known: bool = True
    """Whether the node knows who says it. Whom it does not know it soon cuts off; what that costs counts, too."""


def call(method: str, *elements: object) -> bytes:
    """Return the frame of a call."""
    return wire.frame(*map(pack, (method, *elements)))


def framed(body: bytes) -> bytes:
    """Return a frame, whatever is in it."""
    return len(body).to_bytes(2, "big") + body


def _topic_of(value: bytes, size: int = MAX_TOPIC) -> bytes:
    """Return a :topic of an array of such values, as many as fit in so many bytes."""
    count = size // len(value) - 5
    return wire.frame(wire.TOPIC, b"\x01", b"\xdd" + count.to_bytes(4, "big") + value * count)


_BOMB: Final = pubsub.publish_typed(b"t", bytes((0, pubsub.COMPRESSED)), zlib.compress(bytes(pubsub.MAX_PAYLOAD), 9))

KINDS: Final = {
    "a send! to nobody": Kind(call(":send!", 1, 0, "topic", "value")),
    "the same in the first dialect": Kind(call(":send!", 1, 0, None, "topic", "value")),
    "a recv! and a send! that meet": Kind(call(":recv!", 1, LONG, "t") + call(":send!", 2, LONG, "t", "value")),
    "a recv! that is cancelled": Kind(call(":recv!", 1, LONG, "t") + call(":cancel", 2, 1)),
    ":ping": Kind(call(":ping", 1)),
    ":tokens": Kind(call(":tokens", 1)),
    ":nodes": Kind(call(":nodes", 1)),
    ":nodes after one": Kind(call(":nodes", 1, "a")),
    ":hello": Kind(call(":hello", 1, {})),
    ":hello by another name": Kind(call(":hello", 1, {"name": "a"}) + call(":hello", 1, {"name": "b"})),
    ":topic of nobody": Kind(call(":topic", 1, "t")),
    ":topic of many groups": Kind(
        call(":topic", 1, "t"), before=b"".join(call(":take!", n, LONG, "t", n) for n in range(CROWD))
    ),
    ":topic of many subscriptions": Kind(
        call(":topic", 1, "t"), before=b"".join(call(":subscribe", n, "t") for n in range(CROWD))
    ),
    "a topic of numbers": Kind(_topic_of(b"\x01")),
    "a topic of strings": Kind(_topic_of(b"\xd9\x01a")),
    "a topic of long headers": Kind(_topic_of(b"\xdf\0\0\0\0", 16 * KIB)),
    "a topic that is too long": Kind(_topic_of(b"\x01", 40_000)),
    ":cancel of nothing": Kind(call(":cancel", 1, 2)),
    ":ack of nothing": Kind(call(":ack", 1)),
    ":subscribe and :unsubscribe": Kind(call(":subscribe", 1, "t") + call(":unsubscribe", 2, 1)),
    ":unsubscribe of nothing": Kind(call(":unsubscribe", 1, 2)),
    "no method": Kind(framed(b"\x91\xc0")),
    "a method that there is not": Kind(call(":x", 1)),
    "a method of a long name": Kind(call("x" * 40_000, 1)),
    "a method encoded at length": Kind(framed(b"\x92\xdb\0\0\0\x05:ping\x01")),
    "a call without its elements": Kind(framed(b"\x91" + wire.PING)),
    "a timeout that is none": Kind(call(":recv!", 1, -1, "t")),
    "an id that is too long": Kind(call(":ping", "x" * 33)),
    "what is nested deeply": Kind(wire.frame(wire.PING, b"\x91" * 511 + b"\xc0")),
    "a stranger's empty frames": Kind(framed(b""), known=False),
    "a stranger's unreadable frames": Kind(framed(b"\xc1"), known=False),
    "a stranger's frames without method": Kind(framed(b"\x91\xc0"), known=False),
    "a stranger's :ping": Kind(call(":ping", 1), known=False),
    "a stranger's :hello": Kind(call(":hello", 1, {}), known=False),
    "publish": Kind(pubsub.publish(b"t", b""), True),
    "publish-typed, compressed": Kind(_BOMB, True),
    "subscribe and unsubscribe": Kind(pubsub.subscribe(b"t") + pubsub.unsubscribe(b"t"), True),
    "subscribe again": Kind(pubsub.subscribe(b"t"), True),
    "unsubscribe from nothing": Kind(pubsub.unsubscribe(b""), True),
}
"""By name, what is measured."""


class Market:
    """A node of one worker, and what it takes for what it is sent."""

    def __init__(self, junction: Address, pubsub: Address, worker: int) -> None:
        self._junction = junction
        self._pubsub = pubsub
        self._stat = Path(f"/proc/{worker}/schedstat")

    def price(self, kind: Kind, cpu_s: float) -> float:
        """Return the microseconds that a byte of messages of a kind takes, found by so many seconds of the worker's.

        Raises BenchError if they are not answered.
        """
        piece = kind.said * max(1, PIECE // len(kind.said))
        try:
            with self._connected(self._junction) as other:
                _ask(other, kind.before)
                if not kind.known:
                    return self._spend(cpu_s, piece, lambda: self._cut_off(piece))
                with self._connected(self._pubsub if kind.is_published else self._junction) as sock:
                    say = _publish if kind.is_published else _ask
                    return self._spend(cpu_s, piece, lambda: say(sock, piece))
        except OSError as error:
            raise BenchError(f"{kind.said[:80]!r} is not answered: {error}") from error

    def _spend(self, cpu_s: float, piece: bytes, say: Callable[[], None]) -> float:
        say()  # the first one finds everything cold
        sent, began = 0, self._cpu_s()
        while (taken := self._cpu_s() - began) < cpu_s:
            say()
            sent += len(piece)
        return 1e6 * taken / sent

    def _cpu_s(self) -> float:
        return int(self._stat.read_text().split()[0]) / 1e9

    @contextlib.contextmanager
    def _connected(self, door: Address, host: str = FRIEND) -> Iterator[socket.socket]:
        with socket.create_connection((door.host, door.port), PATIENCE_S, (host, 0)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sock

    def _cut_off(self, piece: bytes) -> None:
        """Say it to the end, or until the node has heard enough."""
        with self._connected(self._junction, STRANGER) as sock, contextlib.suppress(ConnectionError):
            sock.sendall(piece)
            while sock.recv(PIECE):
                pass


def _ask(sock: socket.socket, said: bytes) -> None:
    """Say it, and wait until all that does not wait for others is answered, which is in the order of the calls."""
    _say(sock, said + call(":ping", LAST), lambda answers: wire.frame(wire.PING, pack(LAST), wire.TRUE) in answers)


def _publish(sock: socket.socket, said: bytes) -> None:
    """Say it, and wait for the acks, one for each."""
    messages = len(pubsub.split(said)[0])
    _say(sock, said, lambda answers: len(answers) == messages)


def _say(sock: socket.socket, said: bytes, is_answered: Callable[[bytearray], bool]) -> None:
    """Say it while hearing what is answered: a node does not read on for one who does not."""
    sock.setblocking(False)
    answers = bytearray()
    rest = memoryview(said)
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while not is_answered(answers):
            selector.modify(sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if rest else 0))
            if not selector.select(PATIENCE_S):
                raise TimeoutError(f"no answer within {PATIENCE_S:g} s")
            with contextlib.suppress(BlockingIOError):
                data = sock.recv(1024 * KIB)
                if not data:
                    raise ConnectionResetError("the node has closed the connection")
                answers += data
            if rest:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[sock.send(rest) :]


@contextlib.contextmanager
def market() -> Iterator[Market]:
    """Run a node. Raises StartError."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "skywalker.toml")
        file.write_text(ACCESS)
        with embedded(workers=1, config_file=file, pubsub=True) as node:
            [worker] = node.worker_pids()
            yield Market(Address(node.host, node.port), Address.parse(node.pubsub_address), worker)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", default=0.5, show_default=True, help="the worker's time that each kind is given")
@click.option("--only", default="", help="kinds whose name contains this")
@click.option("--json", "as_json", is_flag=True, help="print as JSON")
def price(seconds: float, only: str, as_json: bool) -> None:
    """Show what a byte of each kind of message costs a worker."""
    with market() as node:
        prices = {name: round(node.price(kind, seconds), 4) for name, kind in KINDS.items() if only in name}
    if as_json:
        click.echo(json.dumps(prices, indent=1))
        return
    rows = sorted(prices.items(), key=lambda row: -row[1])
    for line in table(("what is sent", "us a byte"), [(name, f"{us:.3f}") for name, us in rows]):
        click.echo(line)


if __name__ == "__main__":
    price()
