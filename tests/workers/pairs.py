"""Two plain clients that have a topic to themselves: one sends, the other takes, many at once, and all is looked at."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from tests.workers.wire_client import WireClient, call

AT_ONCE: Final = 64
"""Calls that each has under way."""

TIMEOUT_MS: Final = 60_000


def have_meet(sender: WireClient, taker: WireClient, topic: str, count: int, at_once: int = AT_ONCE) -> None:
    """Have so many values be sent and taken: each once, and in the order in which they were sent."""
    numbers = iter(range(count))

    def make(some: int) -> int:
        batch = [*islice(numbers, some)]
        taker.write(b"".join(call(":take!", number, TIMEOUT_MS, topic, "group") for number in batch))
        sender.write(b"".join(call(":send!", number, TIMEOUT_MS, topic, number) for number in batch))
        return len(batch)

    under_way = make(at_once)
    expected: Iterator[int] = iter(range(count))
    while under_way:
        some = max(1, under_way // 2)
        replies = taker.replies(some, within=30.0)
        assert replies == [[":take!", number, number] for number in islice(expected, some)]
        answers = [(method, result) for method, _, result in sender.replies(some, within=30.0)]
        assert answers == [(":send!", True)] * some
        under_way += make(some) - some


def have_some_meet(sender: WireClient, taker: WireClient, topic: str, count: int) -> tuple[set[int], deque[int]]:
    """Do so until a connection is lost; return the values whose sender was told true, and those that came."""
    told: set[int] = set()
    came: deque[int] = deque()
    try:
        for first in range(0, count, AT_ONCE):
            batch = range(first, first + AT_ONCE)
            taker.write(b"".join(call(":take!", number, TIMEOUT_MS, topic, "group") for number in batch))
            sender.write(b"".join(call(":send!", number, TIMEOUT_MS, topic, number) for number in batch))
            for _ in batch:
                came.append(taker.reply(within=5.0)[2])
                _, number, result = sender.reply(within=5.0)
                if result is True:
                    told.add(number)
    except (OSError, EOFError):
        pass
    return told, came


def unix_client(path: str) -> WireClient:
    """Return a client by a Unix socket."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10.0)
    sock.connect(path)
    return WireClient(sock)


def moved(state: dict[str, Any]) -> int:
    """Return how many connections have moved, by /api/state."""
    count: int = state["moves"]["in"]
    return count
