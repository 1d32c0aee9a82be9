"""The echo where there is no C compiler: `python -m bench.servers.echo_loop PORT`. Runs until it is killed."""

from __future__ import annotations

import contextlib
import select
import socket
import sys

from bench.servers.peer import HOST


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


if __name__ == "__main__":
    serve(int(sys.argv[1]))
