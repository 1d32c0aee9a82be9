"""Redis: BLPOP and RPUSH. A connection that waits in a BLPOP serves nothing else, so there is one call in flight.

What is pushed is stored when nobody waits, so that a sender could run ahead of its receiver. That would be no
rendezvous: the next push of a pair waits until the last value was received.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Final

from bench.errors import BenchError
from bench.lanes import OnlyLane, Pair, Script, values_of
from bench.servers.peer import HOST, Peer, Running, free_port, process, said


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run a server that writes nothing to disk. Raises BenchError."""
    program = shutil.which("redis-server")
    if program is None:
        raise BenchError("there is no redis-server; install it, on Debian: apt-get install redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder]
        with process([program, *options], port) as pid:
            version = said([program, "--version"]).partition("v=")[2].partition(" ")[0]
            yield Running(HOST, port, pid, f"redis-server {version}")


def encode(name: str, number: int, in_flight: int, value_bytes: int) -> Pair:
    """Encode as Pair.encode() does; of one lane. Raises ValueError for more."""
    if in_flight != 1:
        raise ValueError("a connection that waits in a BLPOP has one call in flight")
    (value,) = values_of(number, in_flight, value_bytes)
    key = f"{name}/{number}".encode()
    receiver = Script([array(b"BLPOP", key, b"0")], [array(key, value)], len(array(key, value)) - 2 - value_bytes + 7)
    # The list holds what was just pushed, and nothing else; the one who waits is served after this is answered.
    sender = Script(OnlyLane(array(b"RPUSH", key, value)), OnlyLane(b":1\r\n"), lane_at=0, in_step=True)
    return Pair(receiver, sender)


def array(*items: bytes) -> bytes:
    """Return an array of strings, as commands and most replies are."""
    return b"*%d\r\n" % len(items) + b"".join([b"$%d\r\n%b\r\n" % (len(item), item) for item in items])


PEER: Final = Peer("redis", started, encode, max_in_flight=1)
