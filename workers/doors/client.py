"""One client's connection as Python has anything to do with it: who it is, what it subscribes to, and how it ends.

The core reads and writes it, and has its calls; it goes by a handle. A dialect derives from this and says what is rare
at its door.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, Protocol

from skywalker.access import principal as access
from skywalker.errors import Busy, RequestError
from workers.access.account import Account, Bucket, let_through
from workers.access.admission import Stranger
from workers.core.numbers import Action, Refusal
from workers.doors.commons import Commons
from workers.doors.subscriber import Subscriber, Unsubscribing
from workers.engine.transport import PlainSocket, Transport, transmit
from workers.stats.close_reasons import GOODBYE, Close

ACTIONS: Final = {
    access.SEND: Action.MAY_SEND,
    access.RECV: Action.MAY_RECV,
    access.PUBLISH: Action.MAY_PUBLISH,
    access.SUBSCRIBE: Action.MAY_SUBSCRIBE,
}
"""By what each right is called."""


MAX_NAMES: Final = 32 * 1024
"""Bytes of topics, and of what a client calls its subscriptions to them, that go along if it moves."""


class Register(Protocol):
    """All of one worker, as one of them sees it: clients.py has what these do."""

    commons: Commons

    def number_of(self, account: Account | None) -> int: ...
    def count_in_flight(self) -> None: ...
    def came_early(self, handle: int) -> None: ...
    def cut_off(self, peer: str, limit: str, text: str) -> None: ...
    def ended(self, peer: str, door: int, reason: Close, text: str) -> None: ...


class Client:
    """One of them, from when it came in until the core says that it is closed."""

    __slots__ = (
        "_account", "_bucket", "_ending", "_is_paced", "_stranger", "_transport", "clients", "commons", "core",
        "goes", "handle", "opened_at", "peer", "proved", "standing", "subscriptions",
    )  # fmt: skip

    door: int
    """At which it came in: one of record.py."""
    knows_tokens = False
    """Whether its dialect has a word by which a client says who it is."""
    FACTS: tuple[str, ...]
    """What another worker has to know of one that goes on there, besides whose it is and what the core knows."""
    tls_wanted = b""
    """How one that speaks no TLS is told that it should, if there is a word for it."""

    def __init__(self, clients: Register, handle: int, peer: str, transport: Transport | None) -> None:
        """Only one that speaks TLS has a `transport`: any other is read and written by the core itself."""
        self.clients = clients
        self.commons = clients.commons
        self.core = clients.commons.core
        self.standing = clients.commons.standing
        self.handle = handle
        self.peer = peer
        self.opened_at = self.commons.turn.now
        self.proved = False  # that it is a node's
        # By what its client calls them; those that it has ended by that, until it is in effect.
        self.subscriptions: dict[bytes | Unsubscribing, Subscriber] = {}
        self.goes = False  # to another worker, which takes it
        self._transport = transport
        self._ending: tuple[Close, str] | None = None  # why, of one that has its last words written
        self._account: Account | None = None
        self._stranger: Stranger | None = None
        rate = self.commons.limits.max_rate
        self._bucket = Bucket(rate, self.commons.turn.now) if rate else None
        self._is_paced = False
        self.paced = self._bucket is not None

    # Who it is, as access/admission.py finds it out.

    @property
    def account(self) -> Account | None:
        """Whose it is, where that matters."""
        return self._account

    @account.setter
    def account(self, account: Account | None) -> None:
        self._account = account
        self.core.enter(self.handle, self.clients.number_of(account))

    @property
    def stranger(self) -> Stranger | None:
        """Its place among those of whom that is not known."""
        return self._stranger

    @stranger.setter
    def stranger(self, stranger: Stranger | None) -> None:
        self._stranger = stranger
        self.core.vet(self.handle, self._is_paced or stranger is not None)

    @property
    def paced(self) -> bool:
        """Whether what it asks is counted by the second."""
        return self._is_paced

    @paced.setter
    def paced(self, is_paced: bool) -> None:
        self._is_paced = is_paced
        self.core.vet(self.handle, is_paced or self._stranger is not None)

    @property
    def in_flight(self) -> int:
        """What its principal may have so many of: calls that wait, and subscriptions."""
        waiting, subscriptions, _ = self.core.counts(self.handle)
        return waiting + subscriptions

    def count_in_flight(self) -> None:
        """Have each account know how much its connections have of that now."""
        self.clients.count_in_flight()

    def check(self, action: str, topic: bytes) -> None:
        """Raise Forbidden unless it may do that to a topic; the core does not ask that again."""
        if self._account is not None:
            self._account.check(action, topic)
            self.core.grant(self.clients.number_of(self._account), ACTIONS[action], topic)

    def delay(self) -> tuple[float, str]:
        """Count one more thing that is asked; return 0, or the seconds until there may be more, and by what limit."""
        return let_through(self._bucket, self._account, self.commons.turn.now)

    @property
    def allowance(self) -> float:
        """What its own rate lets it ask at once, where it has one; to be set by who goes on with that of another."""
        return 0.0 if self._bucket is None else self._bucket.left

    @allowance.setter
    def allowance(self, left: float) -> None:
        if self._bucket is not None:
            self._bucket.resume(left)

    def too_much(self, why: int) -> Busy:
        """Return the error for what the core has no room for."""
        limits, account = self.commons.limits, self._account
        if why == Refusal.MESH_IS_FULL:
            return Busy("too much waits for the worker that owns the topic", {"limit": "mesh_bytes"})
        if why == Refusal.OWNER_IS_FULL:
            return Busy("no room for more calls at the worker that owns the topic", {"limit": "waiting_bytes"})
        if why == Refusal.ACCOUNT_IS_FULL and account is not None:
            return account.too_many()
        if why == Refusal.TOO_MANY_BYTES:
            text, limit, value = "the calls that wait take {} bytes", "waiting_bytes", limits.waiting_bytes
        else:
            text, limit, value = "{} calls wait on this connection", "max_calls", limits.max_calls
        return Busy(text.format(value), {"limit": limit, "value": value})

    # To another worker of the node, which most of what it calls is for.

    def facts(self) -> list[Any] | None:
        """Return what that worker has to know of it to go on as this one; None if it stays here."""
        return [getattr(self, name) for name in self.FACTS]

    def go_on_as(self, facts: list[Any]) -> None:
        """Be the one of which another worker has told this."""
        for name, fact in zip(self.FACTS, facts, strict=True):
            setattr(self, name, fact)

    def leaving(self) -> list[list[Any]] | None:
        """Return what it has to know of the subscriptions, which are to go with it; None if they stay."""
        core, all_of_them = self.core, [*self.subscriptions.values()]
        sources = [self.commons.interests.comes_from(each.topic) for each in all_of_them]
        are_settled = len(all_of_them) == sum(isinstance(key, bytes) for key in self.subscriptions)
        if not (all(sources) and are_settled and all(each.done for each in all_of_them)):
            return None
        if sum(len(each.topic) + len(each.key) for each in all_of_them) > MAX_NAMES:
            return None
        # None of them may hang: nothing is read from this client as long as it is on its way. All are asked at once.
        awake = [core.finds_awake(self.handle, life) for life in {*sources} - {core.life}]
        if not all(awake):
            return None
        for each in all_of_them:
            each.leaves()
        about = zip(all_of_them, sources, strict=True)
        return [[each.key, each.topic, each.is_typed, each.split_as, life] for each, life in about]

    def may_go(self, goes: bool) -> None:
        """That worker has said whether it takes it."""
        self.goes = goes
        for each in [*self.subscriptions.values()]:
            if not goes:
                each.moves_no_more()
            elif each.is_due:
                each.owner_is_lost()

    def coming(self, subscriptions: list[list[Any]]) -> None:
        """Take over those of one that is leaving()."""
        come = [(self.subscribe_as(key, topic), is_typed, name) for key, topic, is_typed, name, _ in subscriptions]
        for subscriber, is_typed, split_as in come:
            subscriber.be_typed(is_typed)
            subscriber.comes(tuple(split_as))

    # What it subscribes to.

    def subscribe_as(self, key: bytes, topic: bytes) -> Subscriber:
        """Return a new subscription, which is still to be asked for. Raises Busy if there is no room for it."""
        row, why = self.core.subscribe(self.handle, key, topic)
        if why == Refusal.TOO_MANY_CALLS:
            limit = self.commons.limits.max_calls
            text = f"this connection has {limit} subscriptions, max_calls"
            raise Busy(text, {"limit": "max_calls", "value": limit})
        if why:
            raise self.too_much(why)
        subscriber = self.subscriptions[key] = Subscriber(self, key, topic, row)
        return subscriber

    def unsubscribe_as(self, key: bytes, change: bytes) -> Unsubscribing:
        """Return the end of a subscription, which is still to be asked for, as `change`; there may be none to end.

        It counts until that is in effect: whoever comes and goes while an owner hangs would else have no limit.
        """
        subscriber = self.subscriptions.pop(key, None)
        ending = Unsubscribing(self, change, subscriber)
        if subscriber is not None:
            self.subscriptions[ending] = subscriber
        return ending

    def subscribed(self, subscriber: Subscriber) -> None:
        """It is in effect."""
        raise NotImplementedError

    def unsubscribed(self, by: Unsubscribing) -> None:
        """A subscription has ended."""
        raise NotImplementedError

    def _end_subscriptions(self) -> None:
        while self.subscriptions:
            key, subscriber = self.subscriptions.popitem()
            self.core.unsubscribe(subscriber.row)
            if isinstance(key, bytes):
                subscriber.end()
                self.commons.interests.change(subscriber.topic, -1, None)

    # What the core asks; a dialect has more of it.

    def vet(self, body: bytes) -> int:
        """Return whether this may be done now, as verdicts of core.h."""
        raise NotImplementedError

    def unusual(self, body: bytes) -> None:
        """Do what the core does not."""
        raise NotImplementedError

    def failed(self, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int) -> None:
        """Tell it that a call has failed."""
        raise NotImplementedError

    def half_begun(self, half: bytes, is_first: bool) -> None:
        """Look at what has begun, which may be the first of all."""
        raise NotImplementedError

    def half_is_old(self) -> None:
        """The rest of what has begun did not come in time."""
        raise NotImplementedError

    def is_through(self) -> None:
        """Nothing waits that it asked, and its worker drains."""
        raise NotImplementedError

    def leave(self) -> None:
        """This worker is about to end."""

    def fail_all(self) -> None:
        """Answer every waiting call with an error, since this worker ends."""

    def ring_changed(self) -> None:
        """Tell it, if it wants to know, that the ring is another, or that this node is leaving it."""
        raise NotImplementedError

    def receive(self, most: int) -> tuple[bytes, bool]:
        """Read, of one that speaks TLS; return whether it has ended as well. Raises OSError, as a Transport does."""
        transport = self._secure()
        try:
            return transport.recv(most), transport.ended
        except BlockingIOError:
            raise
        except OSError as error:
            self._ending = self._ending or (Close.BROKEN, f"cannot read: {error.strerror or error}")
            raise

    def transmit(self, data: bytes) -> tuple[int, int]:
        """Write, of one that speaks TLS; return how much of it is written, and how much more is on its way."""
        try:
            return transmit(self._secure(), data)
        except OSError as error:
            self._ending = self._ending or (Close.BROKEN, f"cannot write: {error.strerror}")
            raise

    def shut(self, how: int) -> None:
        """Say that nothing more comes from here, of one that speaks TLS."""
        self._secure().shutdown(how)

    def _secure(self) -> Transport:
        assert self._transport is not None, "it speaks TLS"
        return self._transport

    def closed(self, why: Close, text: str) -> None:
        """It is closed, for this reason unless another was given before."""
        reason, text = self._ending or (why, text)
        if self._transport is not None and reason is not Close.BECAME_LINK:
            self._transport.close()
        self._end_subscriptions()
        self.commons.admission.gone(self)
        self.clients.ended(self.peer, self.door, reason, text)

    # Its end.

    @property
    def is_gone(self) -> bool:
        """Whether nobody expects more of any call of it."""
        return self.core.is_gone(self.handle)

    def push(self, chunk: bytes) -> None:
        """Write that at the end of this turn, or once the peer has read what came before."""
        self.core.push(self.handle, chunk)

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Say why, in this dialect, and then close; nothing more is read or answered."""
        raise NotImplementedError

    def last_words(self, chunk: bytes, reason: Close, text: str) -> None:
        """Write `chunk` and then close; nothing more is read or answered."""
        self.commons.admission.turned_away.note(self.peer, text)
        self.finish(chunk, reason, text)

    def finish(self, chunk: bytes, reason: Close, text: str) -> None:
        """Do the same without a word in the log."""
        self.commons.admission.known(self)  # nobody waits any more to hear who it is
        self._ending = reason, text
        self.core.finish(self.handle)
        self._end_subscriptions()
        self.push(chunk)

    def goodbye(self) -> None:
        """Close, once the peer has taken in what was written."""
        if not self.is_gone:
            self.finish(b"", *GOODBYE)

    def close(self, reason: Close, text: str) -> None:
        """Close at once."""
        self._ending = self._ending or (reason, text)
        self.core.close(self.handle)

    def cut_off(self, limit: str, text: str) -> None:
        """Close a subscriber that, because of a limit, cannot be given all that it should."""
        if not self.core.is_closed(self.handle):
            self.clients.cut_off(self.peer, limit, text)
            self.close(Close.SLOW_SUBSCRIBER, text)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Transport]:
        """Have its socket for a moment: it stays the core's."""
        if self._transport is not None:
            yield self._transport
            return
        sock = self.commons.machine.adopt(self.core.fd(self.handle))
        try:
            yield PlainSocket(sock)
        finally:
            sock.detach()

    def detach(self) -> tuple[Transport, bytes]:
        """Give the socket away, with what is still to be written to it. Only for one that has no calls."""
        transport = self._transport
        fd, unwritten = self.core.detach(self.handle)
        return transport or PlainSocket(self.commons.machine.adopt(fd)), unwritten
