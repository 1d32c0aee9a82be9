"""A node in miniature, in threads, that can be made to answer wrongly: what a benchmark must notice.

It speaks the current dialect, and knows no :hello.
"""

import contextlib
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator

from skywalker.errors import UnknownMethod
from skywalker.wire import junction as wire
from skywalker.wire.frames import split

Fault = Callable[[bytes, int], bytes]
"""Is given a reply that holds a value, and how many of them came before; returns what is written in its place."""

Caller = tuple[socket.socket, bytes]


def honest(reply: bytes, number: int) -> bytes:
    return reply


class Broker:
    """Has the calls of a topic meet one to one, in the order they came."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self._receivers: dict[bytes, deque[Caller]] = defaultdict(deque)
        self._senders: dict[bytes, deque[tuple[Caller, bytes]]] = defaultdict(deque)
        self.values_given = 0

    def serve(self, sock: socket.socket) -> None:
        tail = b""
        with contextlib.suppress(OSError):
            while data := sock.recv(65536):
                frames, tail = split(tail + data)
                for method, id, *arguments in frames:
                    if method == wire.HELLO:
                        sock.sendall(wire.error_frame(method, id, UnknownMethod("there is no method :hello")))
                        continue
                    _timeout, topic, *value = arguments
                    with self._lock:
                        if method == wire.RECV:
                            self._receivers[topic].append((sock, id))
                        else:
                            self._senders[topic].append(((sock, id), value[0]))
                        self._match(topic)

    def _match(self, topic: bytes) -> None:
        receivers, senders = self._receivers[topic], self._senders[topic]
        while receivers and senders:
            (receiver, recv_id), ((sender, send_id), value) = receivers.popleft(), senders.popleft()
            receiver.sendall(self._fault(wire.frame(wire.RECV, recv_id, value), self.values_given))
            self.values_given += 1
            sender.sendall(wire.frame(wire.SEND, send_id, wire.TRUE))


@contextlib.contextmanager
def serving(fault: Fault = honest) -> Iterator[tuple[Broker, int]]:
    """Run a broker for the length of a `with` block; yield it and its port."""
    broker = Broker(fault)
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sockets.append(listener.accept()[0])
                    threads.append(threading.Thread(target=broker.serve, args=[sockets[-1]]))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield broker, listener.getsockname()[1]
        finally:
            # Closing a socket does not wake a thread that waits on it; this does.
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for sock in sockets:
                with contextlib.suppress(OSError):  # its peer has gone already
                    sock.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for sock in sockets:
                sock.close()
