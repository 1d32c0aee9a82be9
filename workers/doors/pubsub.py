"""One client of the pub/sub dialect: what it publishes and subscribes to, in order, each acked once it is in effect.

What it asks takes effect in the order it came; acks wait for those before them, and those of what
is published until it is written to other workers that listen. A connection that has much on its
way to other workers is not read until that is acked, and so is one that published to an owner of
old when the ring changes: what it publishes next must not overtake that.
"""

from __future__ import annotations

import math
import traceback
from collections import deque
from typing import Final

from skywalker.access import principal as access
from skywalker.errors import Busy, Forbidden, RequestError
from skywalker.journal import record
from skywalker.wire.pubsub import (
    ACKED,
    COMPRESSED,
    PUBLISH,
    PUBLISH_TYPED,
    SUBSCRIBE,
    SUBSCRIBE_TYPED,
    UNSUBSCRIBE,
    Item,
    bus_topic,
    bus_value,
    inflate,
    split,
)
from workers.calls.call import ClientCall, NodeCall
from workers.calls.publication import Publication
from workers.doors import states
from workers.doors.commons import Commons
from workers.doors.connection import Connection
from workers.doors.pubsub_wording import Wording
from workers.doors.subscription import Delivery, Subscription, Subscriptions, Unsubscribing
from workers.engine.transport import Transport
from workers.stats.close_reasons import GOODBYE, Close

MAX_IN_FLIGHT: Final = 256 * 1024
"""Bytes that one connection may have on their way to other workers before it is read on."""

SHARE: Final = 64
"""Messages of one connection, of which more, read at once, wait for the next turn if one is long already."""

HUNG_UP: Final = (Close.PEER, "the peer closed it")

NEVER: Final = math.inf
"""The deadline of a publication, which has none."""


class PubSub(Connection):
    """A client's connection, what it subscribes to, and what of its own is not acked yet."""

    __slots__ = (
        "_acks", "_asked", "_behind", "_behind_bytes", "_changes", "_gated", "_in_flight", "_name", "_over", "_said",
        "_subscriptions", "_topic", "_unacked", "_wording",
    )  # fmt: skip

    # A fatal alert, protocol_version: there is no word for it in this dialect, but there is in what should be spoken.
    tls_wanted = b"\x15\x03\x03\x00\x02\x02\x46"

    def __init__(self, sock: Transport, peer: str, commons: Commons) -> None:
        Connection.__init__(self, sock, peer, commons)
        self.door = record.PUBSUB
        self._subscriptions = Subscriptions(commons)
        self._wording: Wording = commons.wording
        self._unacked: deque[Publication | Subscription | Unsubscribing] = deque()  # in the order they are to be acked
        self._acks = 0  # that are to be said for what was handed out in this turn
        self._asked = self._said = 0  # how much is to be acked, and how much of that is, since it was opened
        # Messages that are not written yet, each with how much must have been acked first.
        self._behind: deque[tuple[int, bytes, Delivery | None]] = deque()
        self._behind_bytes = 0
        self._in_flight = 0  # bytes of what is published and not acked
        self._changes = 0  # subscribes and unsubscribes that are not acked
        self._gated = False  # nothing is published until all is acked: the ring has changed, or the owner is behind
        self._over: tuple[Close, str] | None = None  # why nothing more is read once all is acked
        self._topic = self._name = b""  # the last one, and what the bus calls it

    # Input.

    def received(self, data: bytes) -> None:
        if self.standing.leaving and not self._over:
            self.leave()  # it came after the others were told: whom it published to may have gone to our successor
            return
        had_tail = self._tail
        items, self._tail = split(had_tail + data if had_tail else data)
        if self._tail or had_tail:
            self.watch_tail(fresh=bool(items))
        items.reverse()
        self.take(items, SHARE)

    def obey(self, todo: list[Item]) -> None:
        try:
            self._obey_each(todo)
        except Exception:
            # A mistake of ours costs the connection that met it, not everybody on this worker.
            self.commons.log.error("bug", peer=self.peer, trace=traceback.format_exc())
            if not self.gone:
                self._end(Close.BUG, "a mistake in the node, see its log")

    def _obey_each(self, items: list[Item]) -> None:
        done = 0
        while items:
            item = items[-1]
            if self._must_wait(item[0]):
                self.hold(items, states.DELAYED)
                return
            if self._acks and item[0] not in (PUBLISH, PUBLISH_TYPED):
                self.rest(items)  # its ack comes behind those, and at once
                return
            if self.paced:
                seconds, limit = self.delay()
                if seconds:
                    # There is no word for "too many", so it is read more slowly.
                    self.counters.limited(limit)
                    self.rest(items, seconds)
                    return
            items.pop()
            if item[0] == PUBLISH:
                self._publish(item[1], item[2], bus_value(item[3]), item[4])
            else:
                self._do(item)
            if self.turn.later:
                self.turn.attend()
            if self.gone:
                return
            done += 1
            # A few bytes may hold much, or ask for much; a publish does not, and to look at the clock takes time, too.
            if (not done & 7 or item[0] != PUBLISH) and self.has_had_its_share() and items:
                self.rest(items)
                return

    def _must_wait(self, code: int) -> bool:
        if self._over:
            return True
        # What is published and what is subscribed to go different ways to the owner: neither may overtake the other.
        is_publish = code in (PUBLISH, PUBLISH_TYPED)
        return bool(self._unacked) and bool(
            self._gated
            or (self._changes if is_publish else self._in_flight)
            or self._in_flight > MAX_IN_FLIGHT
            or self._ledger.is_full()
            or len(self._unacked) >= self.commons.limits.max_calls
        )

    def _do(self, item: Item) -> None:
        code, topic, form, payload, whole = item
        try:
            if code == PUBLISH_TYPED:
                compressed = form[1] & COMPRESSED
                value = bus_value(inflate(payload) if compressed else payload)
                self._publish(topic, form + payload if compressed else form, value, whole)
            elif code in (SUBSCRIBE, SUBSCRIBE_TYPED):
                self._subscribe(topic, code == SUBSCRIBE_TYPED)
            elif code == UNSUBSCRIBE:
                self._unsubscribe(topic)
            else:
                self._end(Close.UNREADABLE, f"code {code} is not known")
        except Busy as error:
            self.counters.limited(error)
            self._end(Close.REFUSED, str(error))
        except ValueError as error:
            self._end(Close.UNREADABLE, str(error))

    def _publish(self, topic: bytes, form: bytes, value: bytes, whole: bytes) -> None:
        if topic != self._topic or not self._name:
            self._topic, self._name = topic, bus_topic(topic)
        if self.account is not None and not self._may(access.PUBLISH, self._name):
            return
        publication = Publication.__new__(Publication)
        publication.begin(self._name, self.turn.now, value, None)
        publication.begin_for(self, b"", b"", NEVER)
        publication.begin_as(len(value))
        self._asked += 1
        publication.place = self._asked
        publication.form = form
        if form:
            self._wording.begin(publication, None, whole)
        else:
            self._wording.begin(publication, whole, None)
        done = self.routing.publish(publication)
        if done:
            publication.note(record.PROMPT)
        if done and not self._unacked:
            self._handed_out(1)
        else:
            self._in_flight += publication.size
            self._ledger.add(publication.size)
            self._unacked.append(publication)
            carrier = publication.carrier
            if carrier is not None and carrier.congested():
                self._gated = True

    def _may(self, action: str, topic: bytes) -> bool:
        """Whether it is allowed that; if not, the connection ends, since there is no word for it."""
        assert self.account is not None
        try:
            self.account.check(action, topic)
        except Forbidden as error:
            self.counters.refused(error)
            self.commons.admission.refusals.note(self.peer, error)
            self._end(Close.FORBIDDEN, str(error))
            return False
        return True

    def _subscribe(self, topic: bytes, typed: bool) -> None:
        if self.account is not None and not self._may(access.SUBSCRIBE, bus_topic(topic)):
            return
        subscription = self._subscriptions.get(topic)
        if subscription is not None:
            subscription.typed = typed
            self._await(subscription)
            self._ack()
        else:
            subscription = self._subscriptions.add(self, topic, bus_topic(topic), typed)
            self._await(subscription)
            subscription.ask()

    def _unsubscribe(self, topic: bytes) -> None:
        unsubscribing = Unsubscribing(self, topic, self._subscriptions.remove(topic))
        self._await(unsubscribing)
        unsubscribing.ask()

    def _await(self, change: Subscription | Unsubscribing) -> None:
        self._changes += 1
        self._asked += 1
        self._unacked.append(change)

    def _end(self, reason: Close, text: str) -> None:
        """Read nothing more, and close once what came before is acked."""
        self._over = reason, text
        if not self.is_owed():
            self.last_words(b"", reason, text)

    def leave(self) -> None:
        self._over = GOODBYE
        if not self.is_owed():
            self.goodbye()

    def is_owed(self) -> bool:
        return bool(self._unacked or self._acks)

    def half_is_old(self, seconds: float) -> None:
        self._end(Close.HALF_FRAME, f"the rest of a message did not come within {seconds:g} s")

    def hung_up(self) -> None:
        # It may only have ended its own half, and wait for acks.
        if self.is_owed():
            self._hears(states.ENDED)
            self._over = HUNG_UP
        elif self._out and not self.gone:
            self.finish(b"", *HUNG_UP)
        else:
            self.close(*HUNG_UP)

    # What has come into effect.

    def published(self, call: ClientCall) -> None:
        if self.gone:
            self.commons.orphans.settled(call)
        else:
            self._ack()

    def subscribed(self, subscription: Subscription) -> None:
        self._ack()

    def unsubscribed(self, by: Unsubscribing) -> None:
        self._ack()

    def _ack(self) -> None:
        """Say what is in effect: of what was published, once it is written."""
        unacked = self._unacked
        acks, changed = 0, False
        while unacked and unacked[0].done:
            acked = unacked.popleft()
            if isinstance(acked, Publication):
                self._in_flight -= acked.size
                self._ledger.remove(acked.size)
            else:
                self._changes -= 1
                changed = True
            acks += 1
        if self.gone:
            return
        if not unacked:
            self._gated = False
            assert self._in_flight == self._changes == 0, "what is acked is not on its way any more"
        if changed:
            self._say(acks)  # now, since what comes to the topic from now on is written behind it
        elif acks:
            self._handed_out(acks)
        if self.may_go_on():
            self.defer()  # not now: who acks has more to do that comes first

    def _handed_out(self, count: int) -> None:
        if not self._acks:
            self.turn.acks.append(self)
        self._acks += count

    def acknowledge(self) -> None:
        """All that was handed out in this turn is written."""
        acks, self._acks = self._acks, 0
        if not self.gone:
            self._say(acks)

    def _say(self, acks: int) -> None:
        while acks and self._behind:
            # One by one, since each message comes right behind the ack that it waits for.
            acks -= 1
            self._said += 1
            self.push(ACKED)
            self._catch_up(self._said)
        if acks:
            self._said += acks
            self.push(ACKED * acks)
        if self._over and not self._unacked:
            end = self.finish if self._over in (HUNG_UP, GOODBYE) else self.last_words
            end(b"", *self._over)

    def may_go_on(self) -> bool:
        return Connection.may_go_on(self) and not (self._todo and self._must_wait(self._todo[-1][0]))

    # Output.

    def tell(self, subscription: Subscription, send: NodeCall) -> None:
        chunk = self.worded(subscription, send)
        # One of its own is written behind its ack: a client may read nothing else as long as it waits for that.
        place = send.place_for(self) if self._asked != self._said else 0
        if self._behind or place > self._said:
            self._put_behind(place, chunk, None)
        else:
            self.push_message(chunk)

    def push_delivery(self, delivery: Delivery) -> None:
        if self._behind:
            self._put_behind(0, delivery.chunk, delivery)
        else:
            Connection.push_delivery(self, delivery)

    def take_back(self, listener: ClientCall, told: bool) -> bool:
        if isinstance(listener, Delivery) and listener.is_late:
            return True  # _catch_up() leaves it out
        return Connection.take_back(self, listener, told)

    def _put_behind(self, place: int, chunk: bytes, delivery: Delivery | None) -> None:
        """Have a message written behind the ack of that place, and all that come after it behind itself."""
        if delivery is not None:
            delivery.is_late = True
            send = delivery.sender()
            if isinstance(send, ClientCall):  # another, asked back from elsewhere, has remembered it in given_here()
                send.hold()
                # Or, cancelled just when this is about to be written, it is told that nobody has it.
                send.remember(delivery)
        self._behind.append((place, chunk, delivery))
        self._behind_bytes += len(chunk)
        if self._behind_bytes > self._max_unread:
            self._catch_up(self._asked)  # so much is not kept for anybody

    def _catch_up(self, said: int) -> None:
        """Write what waits for no more acks than those."""
        behind = self._behind
        while behind and behind[0][0] <= said:
            _, chunk, delivery = behind.popleft()
            self._behind_bytes -= len(chunk)
            if delivery is None:
                self.push_message(chunk)
            elif delivery.sender().abandoned:
                self.junction.lost(delivery.decided())
            else:
                delivery.is_late = False
                Connection.push_delivery(self, delivery)

    def worded(self, subscription: Subscription, send: NodeCall) -> bytes:
        own = subscription  # compiled, of this very class
        return self._wording.typed(send, own.key) if own.typed else self._wording.plain(send, own.key)

    # The rest of what a connection does.

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        self.counters.refused(error)
        self.last_words(b"", reason, text)  # there is no word for it in this dialect

    def forget(self) -> list[ClientCall]:
        # What is published goes on without us.
        self._ledger.remove(self._in_flight)
        for each in self._unacked:
            if isinstance(each, Publication) and not each.done:
                self.commons.orphans.adopt(each)
        self._in_flight = self._acks = 0
        self._unacked.clear()
        self._subscriptions.end_all()
        self.watch_no_more()
        self._todo = []
        behind, self._behind = self._behind, deque()
        return [delivery for _, _, delivery in behind if delivery is not None]

    @property
    def subscriptions(self) -> int:
        return len(self._subscriptions)

    def fail_all(self, error: RequestError) -> None:
        pass  # a connection that ends says the same of what is not acked

    def waiting(self) -> list[ClientCall]:
        return [each for each in self._unacked if isinstance(each, Publication)]

    def hold_back(self) -> None:
        self._gated = bool(self._unacked)

    def ring_changed(self) -> None:
        self.hold_back()
