"""What is rare at the pub/sub door: all that a client says but publishing, and how it ends.

The core does a good publish that is not compressed, says the acks in their order, and writes messages. There is no word
for an error in this dialect: whoever asks for what cannot be is closed, once all that came before is acked.
"""

from __future__ import annotations

import traceback
from typing import Any, Final

from skywalker.access import principal as access
from skywalker.errors import Busy, Forbidden, RequestError
from skywalker.journal import record
from skywalker.wire.pubsub import (
    COMPRESSED,
    FORM,
    PUBLISH,
    PUBLISH_TYPED,
    SUBSCRIBE,
    SUBSCRIBE_TYPED,
    UNSUBSCRIBE,
    bus_topic,
    bus_value,
    inflate,
    split,
)
from workers.core.numbers import Verdict
from workers.doors.client import Client, Register
from workers.doors.subscriber import Subscriber, Unsubscribing
from workers.engine.transport import Transport
from workers.stats.close_reasons import GOODBYE, Close

HUNG_UP: Final = (Close.PEER, "the peer closed it")


class PubSubClient(Client):
    """One client of this door, as far as it is not the core's."""

    __slots__ = ("_over", "_places")

    door = record.PUBSUB
    FACTS = ("peer", "opened_at", "allowance")
    # A fatal alert, protocol_version: there is no word for it in this dialect, but there is in what should be spoken.
    tls_wanted = b"\x15\x03\x03\x00\x02\x02\x46"

    def __init__(self, clients: Register, handle: int, peer: str, transport: Transport | None) -> None:
        super().__init__(clients, handle, peer, transport)
        self._over: tuple[Close, str] | None = None  # why nothing more is heard
        self._places: dict[Subscriber | Unsubscribing, int] = {}  # of changes that are to be acked

    def facts(self) -> list[Any] | None:
        is_settled = self._transport is None and self._over is None and not self._places
        return super().facts() if is_settled else None

    # What it says.

    def vet(self, body: bytes) -> int:
        if self.standing.opening:
            self.clients.came_early(self.handle)
            return Verdict.HAS_TO_WAIT
        seconds, limit = self.delay()
        if not seconds:
            return Verdict.GOES_ON
        # There is no word for "too many", so it is read more slowly.
        self.commons.turn.counters.limited(limit)
        self.core.pause(self.handle, seconds)
        return Verdict.HAS_TO_WAIT

    def unusual(self, body: bytes) -> None:
        try:
            self._do(body)
        except Busy as error:
            self.commons.turn.counters.limited(error)
            self._end(Close.REFUSED, str(error))
        except Forbidden as error:
            self.commons.turn.counters.refused(error)
            self.commons.admission.refusals.note(self.peer, error)
            self._end(Close.FORBIDDEN, str(error))
        except ValueError as error:
            self._end(Close.UNREADABLE, str(error))
        except Exception:
            # A mistake of ours costs the connection that met it, not everybody on this worker.
            self.commons.log.error("bug", peer=self.peer, trace=traceback.format_exc())
            if not self.is_gone:
                self._end(Close.BUG, "a mistake in the node, see its log")

    def _do(self, body: bytes) -> None:
        ((code, topic, form, payload, _),) = split(body)[0]
        match code:
            case _ if code in (PUBLISH, PUBLISH_TYPED):
                compressed = bool(form) and bool(form[FORM - 1] & COMPRESSED)
                value = bus_value(inflate(payload) if compressed else payload)
                name = bus_topic(topic)
                self.check(access.PUBLISH, name)
                self.core.publish(self.handle, name, value, form + payload if compressed else form)
            case _ if code in (SUBSCRIBE, SUBSCRIBE_TYPED):
                self._subscribe(topic, code == SUBSCRIBE_TYPED)
            case _ if code == UNSUBSCRIBE:
                if (subscriber := self.subscriptions.get(topic)) is not None:
                    # At once: one too many would cost the connection, and changes that are not acked have a limit.
                    self.core.unsubscribe(subscriber.row)
                unsubscribing = self.unsubscribe_as(topic, topic)
                self._places[unsubscribing] = self.core.awaits(self.handle)
                unsubscribing.ask()
            case _:
                raise ValueError(f"code {code} is not known")

    def _subscribe(self, topic: bytes, typed: bool) -> None:
        self.check(access.SUBSCRIBE, bus_topic(topic))
        subscriber = self.subscriptions.get(topic)
        is_new = subscriber is None
        if subscriber is None:
            subscriber = self.subscribe_as(topic, bus_topic(topic))
        subscriber.be_typed(typed)
        place = self.core.awaits(self.handle)
        if is_new:
            self._places[subscriber] = place
            subscriber.ask()
        elif subscriber not in self._places:
            self.core.done(self.handle, place)
        else:
            subscriber.also.append(place)

    def subscribed(self, subscriber: Subscriber) -> None:
        places = [self._places.pop(subscriber), *subscriber.also]
        subscriber.also = []
        for place in places:
            self.core.done(self.handle, place)

    def unsubscribed(self, by: Unsubscribing) -> None:
        self.core.done(self.handle, self._places.pop(by))

    def half_begun(self, half: bytes, is_first: bool) -> None:
        pass  # nobody is a stranger here

    # Its end.

    def _end(self, reason: Close, text: str) -> None:
        """Hear nothing more, and close once what came before is acked."""
        self._over = reason, text
        self.core.over(self.handle)
        if not self.core.is_owed(self.handle):
            self.last_words(b"", reason, text)

    def leave(self) -> None:
        self._over = GOODBYE
        self.core.over(self.handle)
        if not self.core.is_owed(self.handle):
            self.goodbye()

    def is_through(self) -> None:
        if self._over is None and self.standing.leaving:
            self.leave()
        elif self._over in (None, HUNG_UP, GOODBYE):
            self.finish(b"", *(self._over or HUNG_UP))
        else:
            self.last_words(b"", *self._over)

    def half_is_old(self) -> None:
        seconds = self.commons.limits.half_frame_s
        self._end(Close.HALF_FRAME, f"the rest of a message did not come within {seconds:g} s")

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        self.commons.turn.counters.refused(error)
        self.last_words(b"", reason, text)  # there is no word for it in this dialect

    def ring_changed(self) -> None:
        pass  # the core holds back what it publishes

    def failed(self, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int) -> None:
        raise AssertionError("it has no calls")
