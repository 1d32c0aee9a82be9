"""A stranger, in a process of its own, that makes up members at full speed: `flooder ENDPOINT COUNT LENGTH`."""

from __future__ import annotations

import sys

import zmq


def main(where: str, count: int, length: int) -> None:
    """Send so many joins, each of another node that is nowhere, and each with so many bytes besides."""
    junction = f'"junction":{{"x":[{",".join(["[]"] * (length // 3))}]}},' if length else ""
    context = zmq.Context()
    sock = context.socket(zmq.DEALER)
    sock.set(zmq.LINGER, -1)
    sock.connect(where)
    for number in range(count):
        endpoint = f'"tcp://127.0.0.3:{1 + number % 60_000}"'
        told = f'{junction}"id":"f{number}","endpoints":{{"router":{endpoint},"pub":{endpoint}}}'
        told += ',"keepalive":{"period":3600000}'
        message = f'{{"src":"f{number}","dest":"","id":"{number}","type":"_join","data":{{{told}}}}}'
        sock.send(message.encode())
    sock.close()
    context.term()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
