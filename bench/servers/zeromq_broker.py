"""The ZeroMQ broker: `python -m bench.servers.zeromq_broker PORT`. Runs until it is killed.

Calls of a topic meet one to one, in the order they came.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque

import zmq

from bench.servers.peer import HOST
from bench.servers.zeromq import SEND, TRUE


def serve(port: int) -> None:
    """Bring together who sends and who receives, and answer both."""
    router: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
    router.bind(f"tcp://{HOST}:{port}")
    waiting: dict[bytes, deque[tuple[bool, bytes, bytes, bytes]]] = {}  # by topic: senders or receivers, never both
    receive, answer = router.recv_multipart, router.send_multipart
    while True:
        router.poll()
        with contextlib.suppress(zmq.Again):
            while True:
                peer, call, topic, *values = receive(zmq.NOBLOCK)
                sends, id, value = call[:1] == SEND, call[1:], values[0] if values else b""
                line = waiting.get(topic)
                if line is None:
                    waiting[topic] = deque([(sends, peer, id, value)])
                elif line[0][0] == sends:
                    line.append((sends, peer, id, value))
                else:
                    _, other, other_id, other_value = line.popleft()
                    if not line:
                        del waiting[topic]
                    answer((peer, id, TRUE if sends else other_value))
                    answer((other, other_id, value if sends else TRUE))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
