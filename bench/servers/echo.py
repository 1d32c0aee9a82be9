"""The floor: a server that writes back what it reads. Two frames of skywalker's sizes, echoed, count as a rendezvous.

It is echo.c, compiled when it is started; where there is no compiler, the same in Python.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.servers import skywalker
from bench.servers.peer import HOST, Peer, Running, free_port, process
from bench.servers.script import Lanes, Pair, Script

SOURCE: Final = Path(__file__).with_name("echo.c")


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run it. Raises BenchError."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        compiler = shutil.which("cc")
        if compiler is None:
            command, version = [sys.executable, "-m", "bench.servers.echo_loop"], "epoll echo in Python: no C compiler"
        else:
            command, version = [_compiled(compiler, Path(folder))], "epoll echo in C"
        with process([*command, str(port)], port) as pid:
            yield Running(HOST, port, pid, version)


def _compiled(compiler: str, folder: Path) -> str:
    program = str(folder / "echo")
    done = subprocess.run([compiler, "-O2", "-o", program, str(SOURCE)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{compiler} cannot compile {SOURCE}:\n{done.stderr}")
    return program


def encode(lanes: Lanes) -> Pair:
    """Return the scripts of a pair: the calls of skywalker are their own replies."""
    pair = skywalker.encode(lanes)
    return Pair(_echoed(pair.receiver), _echoed(pair.sender))


def _echoed(script: Script) -> Script:
    # Calls and replies begin alike, so that the lane is at the same place.
    return dataclasses.replace(script, replies=script.calls, meets=False)


PEER: Final = Peer("echo", started, encode)
