"""What every server of a comparison has: a way to start it, and the scripts of a pair that meets on it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bench.errors import BenchError
from bench.servers.script import MAX_LANES, Lanes, Pair

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
