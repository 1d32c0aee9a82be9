"""One connection to a node, and those that replace it: what was asked, its acknowledgements, and what was published.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock. A shell reports what
happens to the connection, writes what output() returns, and closes where `hang_up` says why.
What was asked outlives connections: a new one gets all that was not acknowledged, in the order it was asked,
after the topics that are subscribed to. So a publish may arrive twice, and is never lost unnoticed.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, TypeVar

from skywalker.cause import Cause
from skywalker.clients.news import News
from skywalker.clients.no_node import no_node
from skywalker.clients.silence import PROBE_S
from skywalker.deadlines import Deadlines
from skywalker.errors import Cancelled, SkywalkerError, TimedOut, Unauthorized, Unreachable, Why
from skywalker.limits import DEFAULT_PUBSUB_PORT
from skywalker.pubsub.ask import Ask, Connection
from skywalker.pubsub.message import Message, message_of
from skywalker.tls.words import SPEAKS_TLS, is_alert
from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACK, PUBLISH, PUBLISH_TYPED, SUBSCRIBE, UNSUBSCRIBE, Item, split

MUTE_TRIES: Final = 3
"""Connections in a row that a node closes without having acknowledged anything, after which it is not asked any more:
it does not want us, which the dialect has no word for. A node that is just ending does so once or twice."""

_MUTE: Final = Cause(
    "it closes the connection and acknowledges nothing: it refuses us, is at a limit, or is no door for this",
    Why.MUTE,
)

_DOOR: Final = f"a node has a door for this, usually port {DEFAULT_PUBSUB_PORT}, if it is started with --pubsub"

E = TypeVar("E", bound=SkywalkerError)


class Notice(NamedTuple):
    """What the owner of a subscription is to be told of it, besides its connections."""

    text: str
    is_gap: bool
    """Whether it listens again, and may have missed something; else it does not listen at the moment."""


class Exchange:
    """All that was asked and not yet acknowledged, the topics subscribed to, and the messages that nobody has taken."""

    def __init__(self, where: str, *, is_subscriber: bool = False, typed: bool = False, buffer: int = 0) -> None:
        """`where` is for errors; only a subscriber gets messages. With `buffer` it `is_full` when so many wait."""
        self.ended: list[Ask] = []  # since the shell last emptied this; likewise:
        self.news: list[News | Notice] = []
        self.address = ""  # of the connection, or of the last one
        self.failures = 0  # connections and attempts lost in a row, for the back-off
        self.gaps = 0
        self.given_up = False
        """Whether no node has let us in, nor would one if it was tried again."""
        self._where = where
        self._is_subscriber = is_subscriber
        self._typed = typed
        self._buffer = buffer
        self._asks: dict[Ask, None] = {}  # in the order they were asked
        self._deadlines = Deadlines()
        # Each with what was asked of late, any of which will put it into effect; with nothing once it is.
        self._topics: dict[bytes, dict[Ask, None]] = {}
        self._messages: deque[Item] = deque()  # as they came: compressed ones stay small
        self._lost = ""  # why it does not listen any more, until it does again, and since when
        self._lost_at = 0.0
        self._cause = Cause("no connection yet")
        self._was_acknowledged = False  # anything, ever
        self._mute = 0  # connections in a row that were lost with nothing acknowledged
        self._connection: Connection | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def state(self) -> str:
        """How it stands with the connection, in words."""
        return f"connected to {self.address}" if self.is_connected else f"not connected: {self._cause}"

    @property
    def hang_up(self) -> str:
        """Why the shell must close the connection, once it must."""
        return "" if self._connection is None else self._connection.hang_up

    @property
    def output_bytes(self) -> int:
        """How many output() is to return: what a shell bounds."""
        return 0 if self._connection is None else self._connection.out_bytes

    @property
    def is_busy(self) -> bool:
        """Whether a connection is of use."""
        return bool(self._asks or self._topics)

    @property
    def asked(self) -> int:
        """How much was asked that has not ended."""
        return len(self._asks)

    @property
    def topics(self) -> list[bytes]:
        """What it is, or is about to be, subscribed to."""
        return [*self._topics]

    # The owner's side.

    def frame(self, code: int, topic: bytes) -> bytes:
        """Return what a SUBSCRIBE or UNSUBSCRIBE is asked with. Raises LocalProtocolError if the topic is too long."""
        return pubsub.subscribe(topic, self._typed) if code == SUBSCRIBE else pubsub.unsubscribe(topic)

    def begin(self, ask: Ask, now: float) -> None:
        """Ask for it, now if there is a connection, else once there is."""
        if ask.code == SUBSCRIBE:
            waiting = self._topics.get(ask.topic)
            if waiting is None:
                self._topics[ask.topic] = {ask: None}
                if b"*" in ask.topic:
                    self.news.append(Notice(f"{ask} is to that very topic: a * stands for nothing but itself", False))
            elif waiting:
                waiting[ask] = None
        elif ask.code == UNSUBSCRIBE:
            self._topics.pop(ask.topic, None)
        ask.expires = now + ask.timeout
        self._asks[ask] = None
        self._deadlines.add(ask, ask.expires)
        if self._connection is not None:
            self._connection.write(ask, now)

    def abandon(self, ask: Ask, now: float) -> None:
        """End `ask` because nobody wants its outcome any more. What was written may take effect."""
        if ask in self._asks:
            self._end(ask, Cancelled(f"{ask} was given up by its own client"))
            self._withdraw(ask, now)

    @property
    def waiting(self) -> int:
        """How many messages take() would return."""
        return len(self._messages)

    def take(self) -> Message | None:
        """Return the oldest message that waits, None if there is none.

        Raises RemoteProtocolError if it cannot be decompressed; then it is gone.
        """
        return message_of(self._messages.popleft()) if self._messages else None

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be read for now. An acknowledgement is worth reading all that lies before it."""
        return 0 < self._buffer <= len(self._messages) and not self._is_owed

    @property
    def has_room(self) -> bool:
        """Whether reading may go on after it was full: not for every message that is taken."""
        return len(self._messages) <= self._buffer // 2 or self._is_owed

    @property
    def _is_owed(self) -> bool:
        return self._connection is not None and bool(self._connection.owed)

    def close(self, error: SkywalkerError) -> None:
        """End everything that was asked with `error`, and forget the rest."""
        for ask in [*self._asks]:
            self._end(ask, error)
        self._topics.clear()
        self._messages.clear()

    def unreachable(self, cause: str = "", more: str = "") -> Unreachable | Unauthorized:
        """Return the error that says where no node answered, and why: what failed last, or else what is said here."""
        return self._advised(no_node(self._where, self._cause if self.failures else cause or self._cause, more))

    def _advised(self, error: E) -> E:
        """Have an error of somebody whom no node has ever acknowledged anything say what that takes."""
        if not self._was_acknowledged and not error.advice and error.why is None:
            error.advice = _DOOR
        return error

    def nothing_came(self, timeout: float) -> SkywalkerError:
        """Return the error for whoever has waited for a message in vain."""
        if not self.is_connected:
            return self.unreachable()
        return TimedOut(f"no message came from {self.address} within {timeout:g} s")

    # The connection.

    def connected(self, address: str, now: float) -> None:
        """There is a new connection: it gets all that the one before had, and what was asked meanwhile."""
        if self._connection is not None:
            self.disconnected("it was given up halfway", now)  # as an exception in the shell makes happen
        self.address = address
        self.news.append(News(address))
        connection = self._connection = Connection()
        for topic, waiting in self._topics.items():
            if not waiting:
                renewal = connection.last_renewed = Ask(SUBSCRIBE, topic, self.frame(SUBSCRIBE, topic), 0)
                connection.write(renewal, now)
        if connection.last_renewed is None:
            self._lost = ""  # all that was lost has been unsubscribed from
        for ask in self._asks:
            connection.write(ask, now)

    def disconnected(self, cause: str, now: float) -> None:
        """The connection is lost, or an attempt to make one has failed."""
        was_connected = self.is_connected
        if self._connection is not None and not self._lost and not all(self._topics.values()):
            self._lost = f"the connection to {self.address} was lost: {cause}"
            self._lost_at = now
            self.news.append(Notice(f"{self._lost}; until there is another, messages are missed", False))
        self._cause = self._judged(cause)
        self.failures += 1
        self._connection = None
        if was_connected:
            self.news.append(News(self.address, self._cause))
        is_about_us = self._cause.why is not None and self._cause.why.is_about_us
        # Who let us in, or was trusted, before may be renewing its config, or its certificate.
        self.given_up = self._cause.lasts and not (self._was_acknowledged if is_about_us else self.address)
        if self.given_up:
            self._refused(now)

    def _judged(self, cause: str) -> Cause:
        """Return the cause for which a connection was lost, or not made."""
        connection = self._connection
        is_mute = connection is not None and bool(connection.owed) and not connection.hang_up
        self._mute = self._mute + 1 if is_mute and not self._was_acknowledged else 0
        cause = Cause.of(cause)
        return _MUTE if self._mute >= MUTE_TRIES and not cause.lasts else cause

    def _refused(self, now: float) -> None:
        for ask in [*self._asks]:
            self._end(ask, self.unreachable())
            self._withdraw(ask, now)

    def output(self) -> bytes:
        """Return what is to be written, and forget it."""
        connection = self._connection
        if connection is None:
            return b""
        data = b"".join(connection.out)
        connection.out.clear()
        connection.out_bytes = 0
        return data

    def receive(self, data: bytes, now: float) -> None:
        """Take what the node wrote, however it was cut. Never raises; see `hang_up`."""
        connection = self._connection
        if connection is None:
            return
        connection.silence.broken(now)
        items, connection.tail = split(connection.tail + data)
        for item in items:
            if connection.hang_up:
                return
            code = item[0]
            if code == ACK:
                self._acknowledged(connection, now)
            elif code not in (PUBLISH, PUBLISH_TYPED):
                unknown = f"the node sent code {code}, which has no meaning for a client"
                connection.end(SPEAKS_TLS if is_alert(data) else unknown)
            elif not self._is_subscriber:
                connection.end("the node sent a message where none was subscribed to")
            else:
                self.failures = 0
                self._messages.append(item)

    def reading_again(self, now: float) -> None:
        """The shell reads on after it had stopped: what the node had not said meanwhile means nothing."""
        if self._connection is not None:
            self._connection.silence.broken(now)

    def _acknowledged(self, connection: Connection, now: float) -> None:
        if not connection.owed:
            connection.end("the node acknowledged what it was not asked")
            return
        self.failures = 0
        self._was_acknowledged = True
        ask = connection.owed.popleft()
        if ask is connection.last_renewed:
            connection.last_renewed = None
            self._listening_again(now)
        elif ask in self._asks:
            waiting = self._topics.get(ask.topic, {})
            if ask in waiting:
                waiting.clear()
            self._end(ask, None)

    def _listening_again(self, now: float) -> None:
        self.gaps += 1
        after = now - self._lost_at
        text = f"{self._lost}; listening again, at {self.address}, after {after:.3g} s: messages may have been missed"
        self.news.append(Notice(text, True))
        self._lost = ""

    # Time.

    def tick(self, now: float) -> None:
        """End what is due; give up a node that owes an acknowledgement and is silent."""
        for ask in self._deadlines.due(now):
            self._end(ask, self._overdue(ask))
            self._withdraw(ask, now)
        connection = self._connection
        if connection is not None and connection.owed and connection.silence.wait(now) == 0:
            connection.end(f"the node has been silent for {PROBE_S:g} s, and owes an acknowledgement")

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next tick, None if there is nothing to wait for."""
        wait = self._deadlines.wait(now)
        connection = self._connection
        if connection is None or not connection.owed or connection.hang_up:
            return wait
        silence = connection.silence.wait(now)
        return silence if wait is None else min(wait, silence)

    def _overdue(self, ask: Ask) -> SkywalkerError:
        perhaps = "; it may have taken effect" if ask.was_written else ""
        if not self.is_connected:
            return self.unreachable(more=f", for {ask.timeout:g} s; {ask} was not acknowledged{perhaps}")
        before = f", nor before: {self._cause}" if self.failures else ""
        return self._advised(
            TimedOut(f"{self.address} did not acknowledge {ask} within {ask.timeout:g} s{before}{perhaps}")
        )

    # Ends.

    def _end(self, ask: Ask, error: SkywalkerError | None) -> None:
        del self._asks[ask]
        self._deadlines.discard(ask, ask.expires)
        ask.error = error
        ask.ended = True
        ask.frame = b""
        self.ended.append(ask)

    def _withdraw(self, ask: Ask, now: float) -> None:
        """Undo a subscribe that failed, unless the topic was in effect before, or another asks for it too."""
        waiting = self._topics.get(ask.topic, {})
        if ask not in waiting:
            return
        del waiting[ask]
        if not waiting:
            del self._topics[ask.topic]
            if self._connection is not None:
                self._connection.write(Ask(UNSUBSCRIBE, ask.topic, self.frame(UNSUBSCRIBE, ask.topic), 0), now)
