"""The clients of one worker, by the handles of their connections; and what the core asks of who owns it.

Whatever is about one connection is its client's to deal with.
"""

from __future__ import annotations

import functools
import hashlib
import os
import socket
from collections.abc import Iterator
from itertools import islice
from typing import Final

from skywalker.errors import Busy, Unauthorized
from skywalker.wire import values
from workers.access.account import Account
from workers.access.admission import Stranger
from workers.calls.recording import Recording
from workers.core.numbers import Closed
from workers.doors.client import Client
from workers.doors.commons import Commons
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient
from workers.engine.transport import Transport
from workers.stats import metrics
from workers.stats.close_reasons import Close

CLOSES: Final = {
    Closed.BY_PEER: (Close.PEER, "the peer closed it"),
    Closed.CANNOT_READ: (Close.BROKEN, "cannot read: {}"),
    Closed.CANNOT_WRITE: (Close.BROKEN, "cannot write: {}"),
    Closed.BROKEN: (Close.BROKEN, "the connection is broken"),
    Closed.UNREAD: (Close.UNREAD, "the peer does not read its replies"),
    Closed.BY_OWNER: (Close.BUG, "nobody said why"),
    Closed.LAST_WORDS_SAID: (Close.BROKEN, "it has had its last words"),
    Closed.SLOW_SUBSCRIBER: (Close.SLOW_SUBSCRIBER, "it has not read {} bytes of what it subscribes to"),
    Closed.SILENT: (Close.SILENT, "it does not answer a ping"),
    Closed.BECAME_LINK: (Close.BECAME_LINK, "it is the link to another node's worker now"),
    Closed.LOST_ON_ITS_WAY: (Close.LOST_ON_ITS_WAY, "it moved to another worker, and one of the two has ended"),
}
"""By what it is in the core."""

DIALECTS: Final[dict[int, type[Client]]] = {each.door: each for each in (JunctionClient, PubSubClient)}
"""By their doors."""

LIMITS: Final = {
    Closed.UNREAD: "unread_output_s",
    Closed.SLOW_SUBSCRIBER: "subscriber_buffer",
    Closed.SILENT: "idle_probe_s",
}
"""By what limit it was closed, if by one."""


class Clients:
    """All of them, in the order in which they came."""

    def __init__(self, commons: Commons, recording: Recording | None = None) -> None:
        self.commons = commons
        self.core = commons.core
        self._recording = recording
        self.subscribers_cut_off = 0
        self._all: dict[int, Client] = {}
        self._early: list[int] = []
        self._numbers: dict[Account | None, int] = {None: 0}
        self.core.rare = self
        if recording is not None:
            recording.begin(self.core)

    def __iter__(self) -> Iterator[Client]:
        return iter([*self._all.values()])

    def __len__(self) -> int:
        return len(self._all)

    def first(self, most: int) -> list[Client]:
        """Return those that are here for longest, so many at most."""
        return [*islice(self._all.values(), most)]

    def handles(self) -> list[int]:
        """Return those of all, in their order."""
        return [*self._all]

    def get(self, handle: int) -> Client:
        """Return one that is here."""
        return self._all[handle]

    def choked(self) -> dict[Client, int]:
        """Return those that do not read as fast as they are written to, each with the bytes that it has not read."""
        return {self._all[handle]: unread for unread, handle in self.core.choked()}

    def opened(self, client: Client) -> None:
        """One has come in."""
        self._all[client.handle] = client
        memory = self.commons.turn.counters.memory
        memory[metrics.OPENED.at + client.door] += 1
        memory[metrics.CONNECTIONS.at + client.door] += 1

    def let_in(
        self,
        dialect: type[Client],
        fd: int,
        peer: str,
        host: str = "",
        *,
        uid: int | None = None,
        transport: Transport | None = None,
        stranger: Stranger | None = None,
    ) -> Client:
        """Take in a connection that was accepted, and find out whose it is.

        One that speaks TLS comes with a `transport`, and the place that it had among strangers.
        """
        commons = self.commons
        client = dialect(self, self.core.connect(fd, dialect.door, transport is not None), peer, transport)
        if stranger is not None:
            stranger.who, client.stranger = client, stranger
        self.opened(client)
        limit = commons.limits.max_connections
        try:
            if self.excess() > 0:
                raise Busy(f"this worker has {limit} connections", {"limit": "max_connections", "value": limit})
            commons.admission.greet(client, () if transport is None else transport.names(), host, uid)
            if client.stranger is not None and not client.knows_tokens:
                raise Unauthorized("neither its certificate nor its address is known")
        except Busy as error:
            client.turn_away(error, Close.REFUSED, "too many connections")
        except Unauthorized as error:
            client.turn_away(error, Close.UNAUTHORIZED, str(error))
        return client

    def excess(self) -> int:
        """Return how many connections there are more than there may be."""
        return len(self) + self.commons.peers.came_count - self.commons.limits.max_connections

    def number_of(self, account: Account | None) -> int:
        """Return by which number the core knows it."""
        number = self._numbers.get(account)
        if number is None:
            assert account is not None
            number = self._numbers[account] = self.core.account(account.principal.in_flight)
        return number

    def count_in_flight(self) -> None:
        """See how much each principal has in flight, which the core counts."""
        for account, number in self._numbers.items():
            if account is not None:
                account.in_flight = self.core.in_flight(number)

    def came_early(self, handle: int) -> None:
        """It waits to be heard until hear_all()."""
        self._early.append(handle)

    def hear_all(self) -> None:
        """Hear those that came early."""
        early, self._early = self._early, []
        for handle in early:
            self.core.resume(handle)

    def cut_off(self, peer: str, limit: str, text: str) -> None:
        """One is, since a limit does not let it have all that it subscribes to."""
        self.subscribers_cut_off += 1
        self.commons.log.warning("subscriber-cut-off", peer=peer, reason=text, so_far=self.subscribers_cut_off)
        self.commons.turn.counters.limited(limit)

    def ended(self, peer: str, door: int, reason: Close, text: str) -> None:
        """One is closed, and why."""
        self.commons.turn.counters.closed(peer, reason, text)
        self.commons.turn.counters.memory[metrics.CONNECTIONS.at + door] -= 1

    # Those that follow what they call to another worker of this node.

    @functools.cached_property
    def _settings(self) -> bytes:
        """What its worker goes by: who is known and allowed something by others is not taken from one to another."""
        return hashlib.sha256(repr((self.commons.limits, self.commons.admission.access)).encode()).digest()

    def may_move(self, handle: int) -> bytes | None:
        client = self._all[handle]
        facts = client.facts()
        subscriptions = None if facts is None else client.leaving()
        if subscriptions is None:
            return None
        whose = None if client.account is None else client.account.principal.name
        return values.pack([self._settings, whose, client.door, facts, subscriptions])

    def arriving(self, link: int, facts: bytes, calls: int, has_room: bool) -> int:
        settings, whose, door, of_client, subscriptions = values.unpack(facts)
        comes_from = self.commons.interests.comes_from
        come_alike = all(comes_from(topic) == life for _, topic, _, _, life in subscriptions)
        if not (has_room and come_alike and self._has_room_for(settings, whose, calls + len(subscriptions))):
            self.commons.turn.counters.moved("refused")
            return 0
        handle = self.core.connect(-1, door)
        client = self._all[handle] = DIALECTS[door](self, handle, "", None)
        client.go_on_as(of_client)
        self.commons.admission.has_moved(client, whose)
        self.commons.turn.counters.memory[metrics.CONNECTIONS.at + client.door] += 1
        client.coming(subscriptions)
        return handle

    def _has_room_for(self, settings: bytes, whose: str | None, calls: int) -> bool:
        standing = self.commons.standing
        if settings != self._settings or standing.opening or standing.draining or self.excess() >= 0:
            return False
        self.count_in_flight()
        try:
            self.commons.admission.check_move(whose, calls)
        except (Busy, Unauthorized):
            return False
        return True

    def may_go(self, handle: int, goes: bool) -> None:
        self._all[handle].may_go(goes)

    def arrived(self, handle: int) -> None:
        self.commons.turn.counters.moved("in")
        if self._recording is not None:
            self._recording.moved()

    # What else the core asks.

    def vet(self, handle: int, body: bytes) -> int:
        return self._all[handle].vet(body)

    def unusual(self, handle: int, body: bytes) -> None:
        self._all[handle].unusual(body)

    def failed(
        self, handle: int, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int
    ) -> None:
        self._all[handle].failed(method, id, timed_out, why, size, limit)

    def half_begun(self, handle: int, half: bytes, is_first: bool) -> None:
        self._all[handle].half_begun(half, is_first)

    def half_is_old(self, handle: int) -> None:
        self.commons.turn.counters.limited("half_frame_s")
        self._all[handle].half_is_old()

    def is_through(self, handle: int) -> None:
        self._all[handle].is_through()

    def receive(self, handle: int, most: int) -> tuple[bytes, bool]:
        return self._all[handle].receive(most)

    def transmit(self, handle: int, data: bytes) -> tuple[int, int]:
        return self._all[handle].transmit(data)

    def shut(self, handle: int) -> None:
        self._all[handle].shut(socket.SHUT_WR)

    def closed(self, handle: int, why: int, error: int) -> None:
        client = self._all.pop(handle)
        closed = Closed(why)
        if closed is Closed.MOVED:
            self.commons.admission.gone(client)
            self.commons.turn.counters.memory[metrics.CONNECTIONS.at + client.door] -= 1
            self.commons.turn.counters.moved("out")
            return
        reason, text = CLOSES[closed]
        if closed is Closed.SLOW_SUBSCRIBER:
            text = text.format(self.commons.limits.subscriber_buffer)
            self.cut_off(client.peer, LIMITS[closed], text)
        elif closed in LIMITS:
            self.commons.log.info("connection-closed", peer=client.peer, reason=text)
            self.commons.turn.counters.limited(LIMITS[closed])
        client.closed(reason, text.format(os.strerror(error)) if error else text)

    def sampled(self, topic: bytes) -> int:
        return self.commons.turn.counters.recent.call(topic, self.commons.turn.now)

    def named(self, token: int, topic: bytes) -> None:
        assert self._recording is not None
        self._recording.named(token, topic)

    def recorded(self, records: int) -> None:
        assert self._recording is not None
        self._recording.recorded(records)
