"""One connection to a node, and those that replace it: what was asked, its acknowledgements, and what was published.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock. A driver reports what
happens to the connection, and does what the streams in `touched` want.
What was asked outlives connections: a new one gets all that was not acknowledged, in the order it was asked,
after the topics that are subscribed to. So a publish may arrive twice, and is never lost unnoticed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, MutableSequence
from typing import Any, Final, TypeVar

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.call import Call, PubSubKind
from skywalker.clients.core import LineCore
from skywalker.clients.news import News, Notice
from skywalker.clients.stream import PROBE_S, Stream
from skywalker.errors import Cancelled, SkywalkerError, TimedOut, Unauthorized, Unreachable, Why
from skywalker.limits import DEFAULT_PUBSUB_PORT
from skywalker.pubsub.message import Message, message_of, topic_text
from skywalker.tls.words import SPEAKS_TLS, is_alert
from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACK, PUBLISH, PUBLISH_TYPED, SUBSCRIBE, UNSUBSCRIBE, Item, split

_WORDS: Final = {PUBLISH: "publish to", SUBSCRIBE: "subscribe to", UNSUBSCRIBE: "unsubscribe from"}


class Ask:
    """What a node is asked to acknowledge: for a call, or so that a new connection is as the one before."""

    __slots__ = ("call", "code", "frame", "topic", "was_written")

    def __init__(self, code: int, topic: bytes, frame: bytes, call: Call | None = None) -> None:
        """`code` says what is asked, PUBLISH for either kind of it."""
        self.code = code
        self.topic = topic
        self.frame = frame
        self.call = call
        self.was_written = False  # whether any node may have got it

    def __str__(self) -> str:
        return f"the {_WORDS[self.code]} {topic_text(self.topic)!r}"


class Connection(Stream):
    """What is so of one connection, and ends with it."""

    __slots__ = ("last_renewed", "owed")

    def __init__(self, touched: MutableSequence[Any]) -> None:
        super().__init__(touched)
        self.owed: deque[Ask] = deque()  # in the order in which they will be acknowledged
        self.last_renewed: Ask | None = None  # with it all topics of the connection before are in effect again

    def put(self, ask: Ask, now: float) -> None:
        """Have the node asked."""
        if not self.owed:
            self.heard(now)  # silence counts from when an acknowledgement is owed
        self.owed.append(ask)
        self.waiting += 1
        ask.was_written = True
        if ask.call is not None:
            ask.call.line = self  # type: ignore[assignment]  # the calls of one core are on streams of one kind
        self.write(ask.frame)

    def acknowledged(self) -> Ask:
        """Return what was asked first, which is owed no more."""
        self.waiting -= 1
        return self.owed.popleft()


MUTE_TRIES: Final = 3
"""Connections in a row that a node closes without having acknowledged anything, after which it is not asked any more:
it does not want us, which the dialect has no word for. A node that is just ending does so once or twice."""

_MUTE: Final = Cause(
    "it closes the connection and acknowledges nothing: it refuses us, is at a limit, or is no door for this",
    Why.MUTE,
)

_DOOR: Final = f"a node has a door for this, usually port {DEFAULT_PUBSUB_PORT}, if it is started with --pubsub"

_CODES: Final[Mapping[PubSubKind, int]] = {
    "publish": PUBLISH,
    "subscribe": SUBSCRIBE,
    "unsubscribe": UNSUBSCRIBE,
}

E = TypeVar("E", bound=SkywalkerError)


class Exchange(LineCore):
    """All that was asked and not yet acknowledged, the topics subscribed to, and the messages that nobody has taken."""

    main: Connection

    def __init__(self, where: str, *, is_subscriber: bool = False, typed: bool = False, buffer: int = 0) -> None:
        """`where` is for errors; only a subscriber gets messages. With `buffer` it `is_full` when so many wait."""
        super().__init__(where)
        self.main = Connection(self.touched)
        self.gaps = 0
        self._is_subscriber = is_subscriber
        self._typed = typed
        self._buffer = buffer
        self._asks: dict[Call, Ask] = {}  # in the order they were asked
        # Each with what was asked of late, any of which will put it into effect; with nothing once it is.
        self._topics: dict[bytes, dict[Ask, None]] = {}
        self._messages: deque[Item] = deque()  # as they came: compressed ones stay small
        self._lost = ""  # why it does not listen any more, until it does again, and since when
        self._lost_at = 0.0
        self._was_acknowledged = False  # anything, ever
        self._mute = 0  # connections in a row that were lost with nothing acknowledged
        self.arrivals: deque[Call] = deque()
        """The calls that wait for a message."""

    @property
    def busy(self) -> bool:
        return bool(self._asks or self._topics)

    @property
    def topics(self) -> list[bytes]:
        """What it is, or is about to be, subscribed to."""
        return [*self._topics]

    # The owner's side.

    def begin(self, call: Call, kind: PubSubKind, arguments: tuple[bytes, ...], timeout: float, now: float) -> None:
        """Start a call.

        "publish", with a topic and the whole frame, "subscribe" and "unsubscribe", with a topic, end once the node has
        acknowledged them, and "message" once there is one to take, or there may be. Those are asked of the node now if
        there is a connection, else once there is.
        """
        call.start(0, kind, b"", timeout, now)
        call.expires = call.deadline  # nobody else decides
        if kind == "message":
            if self._messages:
                self._end_arrival(call)
            else:
                self.arrivals.append(call)
            return
        code = _CODES[kind]
        topic = arguments[0]
        ask = self._asks[call] = Ask(code, topic, arguments[1] if code == PUBLISH else self._frame(code, topic), call)
        if code == SUBSCRIBE:
            waiting = self._topics.get(topic)
            if waiting is None:
                self._topics[topic] = {ask: None}
                if b"*" in topic:
                    self.news.append(Notice(f"{ask} is to that very topic: a * stands for nothing but itself", False))
            elif waiting:
                waiting[ask] = None
        elif code == UNSUBSCRIBE:
            self._topics.pop(topic, None)
        self._deadlines.add(call, call.expires)
        if self.is_connected:
            self._put(ask, now)

    def _frame(self, code: int, topic: bytes) -> bytes:
        return pubsub.subscribe(topic, self._typed) if code == SUBSCRIBE else pubsub.unsubscribe(topic)

    def _put(self, ask: Ask, now: float) -> None:
        self.main.put(ask, now)
        if self.due_at > now + PROBE_S:
            self.due_at = now + PROBE_S
        if self.main.is_full:
            self._read_or_not(now)

    def cancel(self, call: Call, canceller: Call, timeout: float, now: float) -> None:
        canceller.start(0, "cancel", b"", timeout, now)
        canceller.end(self.owns(call))
        self.abandon(call, now)
        self.ended.append(canceller)

    def owns(self, call: Call) -> bool:
        return call in self._asks or call in self.arrivals

    def abandon(self, call: Call, now: float) -> None:
        """End `call` because nobody wants its outcome any more. What was written may take effect."""
        if call in self._asks:
            ask = self._asks[call]
            self._end(ask, Cancelled(f"{ask} was given up by its own client"))
            self._withdraw(ask, now)
        elif call in self.arrivals:
            self.arrivals.remove(call)
            self._end_arrival(call, Cancelled("nobody waits for a message any more"))

    def wake(self, everybody: bool = False) -> None:
        """End as many of those that wait for a message as there are messages, or all; who finds none waits again."""
        count = len(self.arrivals)
        for _ in range(count if everybody else min(len(self._messages), count)):
            self._end_arrival(self.arrivals.popleft())

    def _end_arrival(self, call: Call, error: SkywalkerError | None = None) -> None:
        call.end(error=error)
        self.ended.append(call)

    @property
    def waiting(self) -> int:
        """How many messages take() would return."""
        return len(self._messages)

    def take(self, now: float) -> Message | None:
        """Return the oldest message that waits, None if there is none.

        Raises RemoteProtocolError if it cannot be decompressed; then it is gone.
        """
        if not self._messages:
            return None
        item = self._messages.popleft()
        if self.main.is_full:
            self._read_or_not(now)
        return message_of(item)

    def _read_or_not(self, now: float) -> None:
        """Have reading stop while the buffer is full, and go on once there is room: not for every message taken.

        An acknowledgement is worth reading all that lies before it.
        """
        main, count = self.main, len(self._messages)
        if not self._buffer or not self.is_connected:
            return
        is_full = not main.owed and count >= (self._buffer // 2 + 1 if main.is_full else self._buffer)
        if is_full != main.is_full:
            main.is_full = is_full
            main.heard(now)  # what the node had not said meanwhile means nothing
            self.touched.append(main)

    def close(self, error: SkywalkerError) -> None:
        """End everything that was asked with `error`, and forget the rest."""
        for ask in [*self._asks.values()]:
            self._end(ask, error)
        while self.arrivals:
            self._end_arrival(self.arrivals.popleft(), error)
        self._topics.clear()
        self._messages.clear()

    def unreachable(self, cause: str = "", more: str = "") -> Unreachable | Unauthorized:
        return self._advised(super().unreachable(cause, more))

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

    def connected_to_node(self, now: float, address: Address | None = None) -> None:
        """There is a new connection: it gets all that the one before had, and what was asked meanwhile."""
        self.is_connected = True
        self._home = address
        self.homes.settle()
        self.address = str(address or self._where)
        self.news.append(News(self.address))
        connection = self.main
        for topic, waiting in self._topics.items():
            if not waiting:
                renewal = connection.last_renewed = Ask(SUBSCRIBE, topic, self._frame(SUBSCRIBE, topic))
                self._put(renewal, now)
        if connection.last_renewed is None:
            self._lost = ""  # all that was lost has been unsubscribed from
        for ask in self._asks.values():
            self._put(ask, now)
        self._read_or_not(now)

    def disconnected(self, cause: str, now: float) -> None:
        """The connection is lost, or an attempt to make one has failed."""
        was_connected, self.is_connected = self.is_connected, False
        lost, self.main = self.main, Connection(self.touched)
        cause = lost.hang_up or cause
        if was_connected and not self._lost and not all(self._topics.values()):
            self._lost = f"the connection to {self.address} was lost: {cause}"
            self._lost_at = now
            self.news.append(Notice(f"{self._lost}; until there is another, messages are missed", False))
        self._cause = self._judged(lost, cause)
        self.failures += 1
        for call in self._asks:
            call.line = None
        if was_connected:
            self.homes.avoid(self._home)
            self.news.append(News(self.address, self._cause))
        is_about_us = self._cause.why is not None and self._cause.why.is_about_us
        # Who let us in, or was trusted, before may be renewing its config, or its certificate.
        self.given_up = self._cause.lasts and not (self._was_acknowledged if is_about_us else self.address)
        if self.given_up:
            self._refused(now)

    def _judged(self, lost: Connection, cause: str) -> Cause:
        """Return the cause for which a connection was lost, or not made."""
        is_mute = bool(lost.owed) and not lost.hang_up
        self._mute = self._mute + 1 if is_mute and not self._was_acknowledged else 0
        cause = Cause.of(cause)
        return _MUTE if self._mute >= MUTE_TRIES and not cause.lasts else cause

    def _refused(self, now: float) -> None:
        for ask in [*self._asks.values()]:
            self._end(ask, self.unreachable())
            self._withdraw(ask, now)

    def receive(self, line: Connection, data: bytes, now: float) -> None:
        connection = self.main
        if line is not connection:
            return
        connection.heard(now)
        items, connection.tail = split(connection.tail + data)
        for item in items:
            if connection.hang_up:
                break
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
        if self.arrivals:
            self.wake()
        if self._buffer:
            self._read_or_not(now)

    def _acknowledged(self, connection: Connection, now: float) -> None:
        if not connection.owed:
            connection.end("the node acknowledged what it was not asked")
            return
        self.failures = 0
        self._was_acknowledged = True
        ask = connection.acknowledged()
        if ask is connection.last_renewed:
            connection.last_renewed = None
            self._listening_again(now)
        elif ask.call in self._asks:
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
        for call in self._deadlines.due(now):
            ask = self._asks[call]
            self._end(ask, self._overdue(ask, call))
            self._withdraw(ask, now)
        while self.arrivals and self.arrivals[0].expires <= now:  # all have the same time
            self._end_arrival(self.arrivals.popleft())
        if self.main.wait_for_probe(now) == 0:
            self.main.end(f"the node has been silent for {PROBE_S:g} s, and owes an acknowledgement")
        if now >= self.due_at:
            silence = self.main.wait_for_probe(now)
            self.due_at = math.inf if silence is None else now + silence

    def _overdue(self, ask: Ask, call: Call) -> SkywalkerError:
        perhaps = "; it may have taken effect" if ask.was_written else ""
        if not self.is_connected:
            return self.unreachable(more=f", for {call.timeout:g} s; {ask} was not acknowledged{perhaps}")
        before = f", nor before: {self._cause}" if self.failures else ""
        return self._advised(
            TimedOut(f"{self.address} did not acknowledge {ask} within {call.timeout:g} s{before}{perhaps}")
        )

    # Ends.

    def _end(self, ask: Ask, error: SkywalkerError | None) -> None:
        call = ask.call
        if call is not None:
            del self._asks[call]
            self._deadlines.discard(call, call.expires)
            call.end(error=error)
            self.ended.append(call)

    def _withdraw(self, ask: Ask, now: float) -> None:
        """Undo a subscribe that failed, unless the topic was in effect before, or another asks for it too."""
        waiting = self._topics.get(ask.topic, {})
        if ask not in waiting:
            return
        del waiting[ask]
        if not waiting:
            del self._topics[ask.topic]
            if self.is_connected:
                self._put(Ask(UNSUBSCRIBE, ask.topic, self._frame(UNSUBSCRIBE, ask.topic)), now)
