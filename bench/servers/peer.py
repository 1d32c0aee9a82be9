"""What every server of a comparison has: a way to start it, and what a pair of connections says to it and must hear.

All of that is encoded once. A send! reaches every recv! that waits on its topic, so that each call in flight has a
*lane* of its own. All replies on a connection have the same size and the lane's number is one byte at the same place in
each, so replies are counted, told apart and compared by slicing alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from bench.errors import BenchError

MAX_LANES: Final = 256
"""Lanes of one connection: the number is one byte."""

MIN_VALUE_BYTES: Final = 8
"""Bytes of the shortest value: it names its pair and its lane, so that no other value can pass for it."""


class Opening(NamedTuple):
    """What a connection begins with, and whether what was heard so far is all of the answer."""

    said: bytes = b""
    is_answered: Callable[[bytes], object] = bool

    @classmethod
    def until(cls, said: bytes, pattern: bytes) -> Opening:
        """Return one whose answer is over where a pattern is found."""
        return cls(said, re.compile(pattern).search)


NO_OPENING: Final = Opening()


@dataclasses.dataclass(frozen=True, slots=True)
class Lanes:
    """What the lanes of a pair are about: lane number n sends `values[n]` to `topics[n]`."""

    topics: Sequence[str]
    values: Sequence[bytes]  # each with its lane as its eighth byte, unless lanes share topics
    timeout_ms: int = 60_000
    is_first_dialect: bool = False  # of skywalker
    takes: bool = False  # as one of a group, which only skywalker knows


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """What one connection says and must hear, by lane.

    In every reply the byte at `lane_at` is the number of its lane, unless there is only one. A connection that
    `answers` begins by listening: its calls are its answers to what it hears. One that does not `meet` is answered by
    the server itself, whatever the other side does.
    """

    calls: Sequence[bytes]
    replies: Sequence[bytes]  # all of one size
    lane_at: int = 0
    opening: Opening = NO_OPENING  # before all calls
    ping: bytes = b""  # may be heard between any two replies
    pong: bytes = b""  # what is then said
    answers: bool = False
    meets: bool = True
    in_step: bool = False  # whether a call is made again only when the other side, too, is answered
    topics: Sequence[bytes] = ()  # canonical, of a node of skywalker

    def lanes_of(self, data: bytes) -> bytes | None:
        """Return the lanes that whole replies answer, or None if any of them is not the right one."""
        replies = self.replies
        lanes = data[self.lane_at :: len(replies[0])]
        try:
            expected = b"".join([replies[lane] for lane in lanes])
        except IndexError:
            return None
        return lanes if data == expected else None


class Pair(NamedTuple):
    """The scripts of a connection that receives and of one that sends."""

    receiver: Script
    sender: Script


HOST: Final = "127.0.0.1"
START_S: Final = 15.0
GRACE_S: Final = 3.0


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A server that runs: where it listens, the process whose tree it is, and what it is in words."""

    host: str
    port: int
    pid: int
    version: str


@dataclasses.dataclass(frozen=True, slots=True)
class Peer:
    """A kind of server. `started()` runs one for a `with` block; `encode` makes the scripts of a pair."""

    name: str
    started: Callable[[], contextlib.AbstractContextManager[Running]]
    encode: Callable[[Lanes], Pair]
    max_in_flight: int = MAX_LANES


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def process(command: Sequence[str], port: int) -> Iterator[int]:
    """Run a server's command for a `with` block, from when it takes connections; yield its process.

    Raises BenchError with the server's own words if it does not start.
    """
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,  # a Ctrl-C at the terminal is for us, who then end it
        )
        try:
            deadline = time.monotonic() + START_S
            while not _takes_connections(port):
                if child.poll() is not None or time.monotonic() > deadline:
                    words = os.pread(log.fileno(), 2000, 0).decode(errors="replace").strip()
                    raise BenchError(f"{command[0]} did not start; it said:\n{words}")
                time.sleep(0.02)
            yield child.pid
        finally:
            child.terminate()
            try:
                child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def _takes_connections(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True


def said(command: Sequence[str]) -> str:
    """Return the first line that a command prints. Raises BenchError if it fails."""
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=START_S).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchError(f"{' '.join(command)} failed: {error}") from error
    return output.partition("\n")[0].strip()
