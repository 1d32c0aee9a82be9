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
from bench.servers.peer import HOST, Lanes, Pair, Peer, Running, Script, free_port, process, said


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


def encode(lanes: Lanes) -> Pair:
    """Return the scripts of a pair of one lane. Raises ValueError for more."""
    if len(lanes.topics) != 1:
        raise ValueError("a connection that waits in a BLPOP has one call in flight")
    key, value = lanes.topics[0].encode(), lanes.values[0]
    receiver = Script([array(b"BLPOP", key, b"0")], [array(key, value)])
    # The list holds what was just pushed, and nothing else; the one who waits is served after this is answered.
    sender = Script([array(b"RPUSH", key, value)], [b":1\r\n"], in_step=True)
    return Pair(receiver, sender)


def array(*items: bytes) -> bytes:
    """Return an array of strings, as commands and most replies are."""
    return b"*%d\r\n" % len(items) + b"".join([b"$%d\r\n%b\r\n" % (len(item), item) for item in items])


PEER: Final = Peer("redis", started, encode, max_in_flight=1)
