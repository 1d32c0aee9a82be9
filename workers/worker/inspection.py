"""What a worker tells the agent of what it holds: the topics on which somebody waits, and its connections.

    question   {"what": "topics", "order": "waiting" or "rate", "limit": n}
               {"what": "connections", "order": "unread", "waiting" or "age", "limit": n}
    answer     a packet that says nothing, with a file in memory that holds JSON; without one if there is no answer

However much a worker holds, it looks at so little of it, and so seldom, that its clients hardly notice. Topics are told
as bytes, each a character of Latin-1: what they mean is for the agent to find out. Of a long one that is its beginning,
and a digest of the whole, which is told again as `cut`.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
import os
import socket
import traceback
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from skywalker.journal import record
from workers.doors.client import Client
from workers.doors.clients import Clients
from workers.doors.commons import Commons
from workers.doors.junction.session import Session
from workers.engine.loop import BROKEN, READ, Alarm
from workers.stats.log import MAX_NAME

MAX_LOOKED_AT: Final = 20_000
"""Lines of those who wait on a topic, or connections, that are looked at for one answer: it takes some milliseconds."""

TOPIC_BYTES: Final = 256
"""Of one topic in an answer, of which there may be a thousand."""

DIGEST_BYTES: Final = 16
"""Of those, for what tells one that is cut from others of the same beginning."""

SHARE: Final = 10
"""Answers take one part in so many of the worker's time: what is asked sooner has to wait."""

_PACKET: Final = 4096


class Inspection:
    """One end of a socket to the agent; the agent's end ends it."""

    def __init__(self, sock: socket.socket, clients: Clients) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._clients = clients
        self._commons = clients.commons
        self._has_warned = False
        self._is_resting = False

    def open(self) -> None:
        """Answer from now on."""
        self._commons.loop.add(self._socket.fileno(), self)

    def ready(self, events: int) -> None:
        """Answer one question."""
        if self._is_resting and not events & BROKEN:
            return
        data = b""
        if not events & BROKEN:  # else nobody is there any more to be answered
            try:
                data = self._socket.recv(_PACKET)
            except BlockingIOError:
                return
            except OSError:
                pass
        if not data:
            self._commons.loop.remove(self._socket.fileno())
            self._socket.close()
            return
        began = self._commons.machine.worked()
        self._answer(data)
        self._rest(SHARE * (self._commons.machine.worked() - began))

    def _rest(self, seconds: float) -> None:
        self._is_resting = True
        self._commons.loop.change(self._socket.fileno(), 0)
        Alarm().set(self._commons.turn, self._commons.turn.now + seconds, self._go_on)

    def _go_on(self) -> None:
        self._is_resting = False
        if self._socket.fileno() >= 0:
            self._commons.loop.change(self._socket.fileno(), READ)

    def _answer(self, question: bytes) -> None:
        # What goes wrong here costs who asks an answer, not everybody on this worker.
        try:
            self._look(json.loads(question))
            return
        except ConnectionError:
            return  # the agent is dead, which is about to be read, too
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                self._commons.log.warning("no-inspection", reason=error.strerror)
        except Exception:
            self._commons.log.error("bug", trace=traceback.format_exc())
        with contextlib.suppress(OSError):
            self._socket.send(b"no answer")

    def _look(self, question: dict[str, Any]) -> None:
        order, limit = question["order"], question["limit"]
        if question["what"] == "topics":
            found = _topics(self._commons, order, limit)
        else:
            clock_began = self._commons.machine.unix() - self._commons.machine.monotonic()
            found = _connections(self._clients, order, limit, clock_began)
        answer = json.dumps(found).encode()
        with open(os.memfd_create("skywalker-inspection"), "wb", buffering=0) as file:
            file.write(answer)
            socket.send_fds(self._socket, [b"answer"], [file.fileno()])


def _topics(commons: Commons, order: str, limit: int) -> dict[str, Any]:
    core = commons.core
    rates = commons.turn.counters.recent.rates(commons.turn.now)
    if order == "rate":
        chosen: Iterable[bytes] = islice(rates, limit)
        looked_at = len(rates)
    else:
        topics = sorted(core.topics(MAX_LOOKED_AT))
        looked_at = len(topics)
        chosen = (topic for _, topic in topics[:limit])
    loads: dict[int, float] = {}  # calls a second, by which worker of this node owns their topics
    for topic, rate in rates.items():
        if (owner := _owner(commons, topic)) is not None:
            loads[owner] = loads.get(owner, 0.0) + rate
    rows = []
    for topic in chosen:
        census = core.census(topic)
        rows.append(
            {
                "topic": _told(topic),
                "cut": _digest(topic).hex(),
                "owner": _owner(commons, topic),
                "owned": commons.interests.source(topic).carrier is None,
                "senders": census.senders,
                "receivers": census.receivers,
                "takers": sum(census.takers.values()),
                "subscribers": census.subscribers,
                "since": None if census.oldest is None else max(0.0, commons.turn.now - census.oldest),
            }
        )
    busiest = {_told(topic): rate for topic, rate in islice(rates.items(), limit)}
    return {"topics_in_all": core.topic_count, "looked_at": looked_at, "topics": rows, "rates": busiest, "loads": loads}


def _owner(commons: Commons, topic: bytes) -> int | None:
    """Return which worker of this node owns a topic; None if another node does."""
    place = commons.owners.of(topic).place
    return place.worker if place.node == commons.node.id else None


def _told(topic: bytes) -> str:
    digest = _digest(topic)
    return (topic[: TOPIC_BYTES - DIGEST_BYTES] + digest if digest else topic).decode("latin-1")


def _digest(topic: bytes) -> bytes:
    """Return that of a topic that is too long to be told in whole, else nothing."""
    return hashlib.blake2b(topic, digest_size=DIGEST_BYTES).digest() if len(topic) > TOPIC_BYTES else b""


def _connections(clients: Clients, order: str, limit: int, clock_began: float) -> dict[str, Any]:
    core, turn = clients.commons.core, clients.commons.turn
    chosen: Iterable[Client]
    choked = clients.choked()
    if order == "waiting":
        some = clients.first(MAX_LOOKED_AT)
        looked_at = len(some)
        waiting = {client: core.counts(client.handle)[0] for client in some}
        chosen = heapq.nlargest(limit, some, key=waiting.__getitem__)
    else:
        # They are in the order in which they came; and who is choked is known.
        slow = heapq.nlargest(limit, choked, key=choked.__getitem__) if order == "unread" else []
        looked_at = len(choked) if order == "unread" else 0
        chosen = islice(dict.fromkeys((*slow, *clients.first(limit))), limit)
    rows = [_row(client, turn.now) for client in chosen]
    assert len(rows) <= limit, "each has room in the answer"
    closed = [
        {"time": clock_began + at, "peer": _text(peer), "reason": reason, "text": _text(text)}
        for at, peer, reason, text in reversed(turn.counters.recent.closed)
    ]
    return {
        "connections_in_all": len(clients),
        "looked_at": max(looked_at, len(rows)),
        "connections": rows,
        "closed": closed,
    }


def _row(client: Client, now: float) -> dict[str, Any]:
    waiting, subscriptions, unread = client.core.counts(client.handle)
    return {
        "peer": client.peer.partition(" ")[0],
        "name": _text(client.name[:MAX_NAME]) if isinstance(client, Session) else "",
        "door": record.DOORS[client.door],
        "age": max(0.0, now - client.opened_at),
        "waiting": waiting,
        "subscriptions": subscriptions,
        "unread_bytes": unread,
        "choked": unread > 0,
    }


def _text(told: str) -> str:
    """Return what a client said as text that anybody can encode: it may hold bytes that are none."""
    return told.encode(errors="replace").decode()
