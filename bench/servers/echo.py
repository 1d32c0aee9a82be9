"""The floor: a server that writes back what it reads. Two frames of skywalker's sizes, echoed, count as a rendezvous.

It is echo.c, compiled when it is started; where there is no compiler, the same in Python.
"""

from __future__ import annotations

import contextlib
import dataclasses
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.servers import skywalker
from bench.servers.peer import HOST, Lanes, Pair, Peer, Running, Script, free_port, process

SOURCE: Final = Path(__file__).with_name("echo.c")
IN_PYTHON: Final = "import sys; from bench.servers.echo import serve; serve(int(sys.argv[1]))"


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run it. Raises BenchError."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        compiler = shutil.which("cc")
        if compiler is None:
            command, version = [sys.executable, "-c", IN_PYTHON], "epoll echo in Python: no C compiler"
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


def serve(port: int) -> None:
    """Write back what comes. What a client does not read in time is lost, with its connection."""
    listener = socket.create_server((HOST, port), backlog=1024)
    sockets: dict[int, socket.socket] = {}
    with select.epoll() as epoll:
        epoll.register(listener, select.EPOLLIN)
        while True:
            for fd, _ in epoll.poll():
                if fd == listener.fileno():
                    sock, _ = listener.accept()
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sockets[sock.fileno()] = sock
                    epoll.register(sock, select.EPOLLIN)
                    continue
                data = b""
                with contextlib.suppress(OSError):
                    data = sockets[fd].recv(65536)
                    sockets[fd].sendall(data)
                if not data:
                    sockets.pop(fd).close()
