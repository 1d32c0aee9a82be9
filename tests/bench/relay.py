"""A relay before a real server that changes what the server says: what a benchmark must notice."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Change = Callable[[bytes], bytes]


def _pump(source: socket.socket, sink: socket.socket, change: Change) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(change(data))
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relaying(port: int, change: Change) -> Iterator[int]:
    """Relay connections to a port of loopback for the length of a `with` block; yield the relay's own port."""
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
                    sockets.extend((client, server))
                    for sock in (client, server):
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for ends in ((client, server, bytes), (server, client, change)):
                        threads.append(threading.Thread(target=_pump, args=ends))
                        threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield listener.getsockname()[1]
        finally:
            # Closing a socket does not wake a thread that waits on it; this does.
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for sock in sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for sock in sockets:
                sock.close()
