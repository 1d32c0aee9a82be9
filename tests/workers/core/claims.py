"""What is so of all that clients are told, whatever they and others say, read, and when they leave.

* What is written is well-formed, and nothing is half a frame but the last, of one that does not read.
* An answer is one to something that was asked, and there is one at most. One that stays is answered in the end.
* A value came from somebody who sent it, to that topic; one of each group has it at most, unless one that agreed on
  acks cancels the call, or is gone, or a link is lost that puts its send in doubt. Whose send! is answered `true`,
  somebody has its value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Final, NamedTuple

import msgpack

from skywalker.errors import BadTopic
from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from skywalker.wire.frames import BadFrame, Frame
from skywalker.wire.frames import split as split_frames
from workers.doors.junction import methods
from workers.stats import metrics

Key = tuple[bytes, bytes]
"""A method and an id."""

UNIQUE: Final = 18
"""Bytes of a random value, encoded, of which there is no second one."""

PROBE: Final = [wire.PING, wire.NIL]
FOR_LONG: Final = values.pack(2**40)
"""A timeout that is too long, and so the longest where there is no word for that."""
UNASKED: Final = (wire.RING, wire.ERROR)
VALUES: Final = {wire.SEND: (5, 6), wire.WILL: (5,)}
ACKS: Final = values.pack("ack") + wire.TRUE
NAMES: Final = {wire.SEND: "send", wire.RECV: "recv", wire.TAKE: "take"}
LISTENERS: Final = {wire.RECV: (4, 5), wire.TAKE: (5,), wire.SUBSCRIBE: (3,)}


class Lost(NamedTuple):
    """Ends of links that have closed."""

    siblings: int = 0
    abroad: int = 0


class Taken(NamedTuple):
    """That one of a group was given a value."""

    by: Calls
    id: bytes
    lost: Lost  # when it had yet to be given that

    def may_go_to_another(self, lost: Lost) -> bool:
        """Return whether its client gives it back, or its send may be in doubt, which is offered again.

        A link that ends puts in doubt whatever waits behind it at another node. Of siblings it is known what they have
        handed out, but not whether that will be acknowledged.
        """
        is_in_doubt = lost.abroad > self.lost.abroad or (self.by.acks and lost.siblings > self.lost.siblings)
        return self.by.gives_back(self.id) or is_in_doubt


class Claims:
    """Of all clients of a history together."""

    def __init__(self) -> None:
        self.sent: defaultdict[bytes, set[bytes]] = defaultdict(set)  # values, by topic
        self.had: set[bytes] = set()
        self.taken: dict[tuple[bytes, bytes], Taken] = {}  # by group and unique value, who had it last
        self.lost = self.lost_before = Lost()  # by now, and when what clients are told was looked at last
        self.met: Counter[bytes] = Counter()  # of calls that heard so, by method

    def sends(self, topic: bytes, value: bytes) -> None:
        self.sent[topic].add(value)

    def has(self, topic: bytes, value: bytes) -> None:
        assert value in self.sent[topic], "nobody sent that to this topic"
        self.had.add(value)

    def are_counted(self, memories: Collection[memoryview[int]]) -> None:
        """Whoever met somebody, and knows it, is counted by a worker."""
        for method, name in NAMES.items():
            cells = [metrics.CALLS.cell(name, outcome) for outcome in ("met", "prompt")]
            assert sum(memory[cell] for memory in memories for cell in cells) >= self.met[method], name


class Talk:
    """Of one of them, whatever it speaks."""

    is_gone = False  # it has left, or is closed

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self._said = self._told = b""

    def says(self, data: bytes) -> None:
        """Note what it writes, which may be cut anywhere."""
        raise NotImplementedError

    def hears(self, data: bytes) -> None:
        """Look at what it is told, also cut anywhere; those who asked look at it once all have (settled)."""
        raise NotImplementedError

    def settled(self) -> None:
        """All that was written to anybody is looked at."""

    def unanswered(self) -> object:
        """Return what is not answered of all that it asked."""
        raise NotImplementedError


class Calls(Talk):
    """One that calls."""

    def __init__(self, claims: Claims) -> None:
        super().__init__(claims)
        self.asked: Counter[Key] = Counter()
        self._need_none: Counter[Key] = Counter()  # of those, what is answered only if it is refused, or much later
        self._topics: defaultdict[Key, set[bytes]] = defaultdict(set)
        self._groups: defaultdict[bytes, set[bytes]] = defaultdict(set)  # by id
        self._values: defaultdict[bytes, list[bytes]] = defaultdict(list)  # of sends, by id
        self.acks = False  # what it is given it may not have before it says so; also once it no longer agrees on that
        self._cancelled: set[bytes] = set()  # ids
        self._timed_out: set[bytes] = {wire.TIMED_OUT}
        self._were_met: list[bytes] = []  # ids of sends

    def says(self, data: bytes) -> None:
        frames, self._said = split_frames(self._said + data)
        for frame in frames:
            self._asks(frame)

    def _asks(self, frame: Frame) -> None:
        method, id = methods.echo(frame)
        self.asked[method, id] += 1
        self._timed_out.add(methods.timed_out_of(frame))
        if isinstance(frame, BadFrame):
            return
        # Whatever a probe is answered with.
        is_answer = (method == wire.ACK and len(frame) == 2) or ([method, id] == PROBE and len(frame) == 3)
        self._need_none[method, id] += is_answer or frame[2:3] == [FOR_LONG]
        try:
            if method == wire.HELLO:
                self.acks = self.acks or ACKS in frame[-1]
            elif method == wire.CANCEL and len(frame) == 3:
                self._cancelled.add(frame[2])
            elif len(frame) in LISTENERS.get(method, ()):
                self._topics[method, id].add(values.topic_bytes(frame[3 if method == wire.TAKE else -1]))
                if method == wire.TAKE:
                    self._groups[id].add(values.topic_bytes(frame[4]))
            elif len(frame) in VALUES.get(method, ()):
                self.claims.sends(values.topic_bytes(frame[-2]), frame[-1])
                if method == wire.SEND:
                    self._values[id].append(frame[-1])
        except BadTopic:
            pass  # that is what it is told

    def hears(self, data: bytes) -> None:
        frames, self._told = split_frames(self._told + data)
        for frame in frames:
            assert not isinstance(frame, BadFrame), frame
            method, id, *results = frame
            if frame != PROBE:
                (result,) = results
                self._hears(method, id, result)

    def _hears(self, method: bytes, id: bytes, result: bytes) -> None:
        key = method, id
        if method == wire.MESSAGE:
            key = wire.SUBSCRIBE, id
            assert self._topics[key], "it did not subscribe"
        elif self.asked[key] or method not in UNASKED:
            self.asked[key] -= 1
            assert self.asked[key] >= 0, "nobody asked that, or it is answered already"
        if method == wire.SEND and result == wire.TRUE:
            self._were_met.append(id)
            self.claims.met[method] += 1
        elif method in (wire.RECV, wire.TAKE, wire.MESSAGE):
            self._is_given(key, method, result)

    def _is_given(self, key: Key, method: bytes, result: bytes) -> None:
        if (method != wire.MESSAGE and result in self._timed_out) or wire.is_reserved(result):
            return
        topic = next((topic for topic in self._topics[key] if result in self.claims.sent[topic]), None)
        assert topic is not None, "nobody sent that to a topic that it asked for"
        self.claims.has(topic, result)
        self.claims.met[method] += not self.acks
        if method == wire.TAKE and len(result) >= UNIQUE and len(self._groups[key[1]]) == 1:
            (group,) = self._groups[key[1]]
            claims = self.claims
            other = claims.taken.get((group, result))
            assert other is None or other.may_go_to_another(claims.lost), "two of one group have the same value"
            claims.taken[group, result] = Taken(self, key[1], claims.lost_before)

    def gives_back(self, id: bytes) -> bool:
        """Whether somebody else may be given what it was given for that call, which it may not have acknowledged."""
        return self.acks and (self.is_gone or id in self._cancelled)

    def settled(self) -> None:
        for id in self._were_met:
            sent = self._values[id]
            if len(sent) == 1 and len(sent[0]) >= UNIQUE:
                assert sent[0] in self.claims.had, "nobody has what was sent"
        self._were_met.clear()

    def unanswered(self) -> object:
        return self.asked - self._need_none


class Publications(Talk):
    """One that speaks pub/sub."""

    def __init__(self, claims: Claims) -> None:
        super().__init__(claims)
        self._asked = 0
        self._topics: set[bytes] = set()

    def says(self, data: bytes) -> None:
        items, self._said = pubsub.split(self._said + data)
        for code, topic, form, payload, _ in items:
            if not pubsub.PUBLISH <= code <= pubsub.PUBLISH_TYPED:
                continue
            self._asked += code != pubsub.ACK
            if code in (pubsub.SUBSCRIBE, pubsub.SUBSCRIBE_TYPED):
                self._topics.add(topic)
            elif code in (pubsub.PUBLISH, pubsub.PUBLISH_TYPED):
                self.claims.sends(pubsub.bus_topic(topic), pubsub.bus_value(_plain(form, payload)))

    def hears(self, data: bytes) -> None:
        items, self._told = pubsub.split(self._told + data)
        for code, topic, form, payload, _ in items:
            if code == pubsub.ACK:
                self._asked -= 1
                assert self._asked >= 0, "that is acked already"
                continue
            assert code in (pubsub.PUBLISH, pubsub.PUBLISH_TYPED), code
            assert topic in self._topics
            on_the_bus = pubsub.bus_topic(topic)
            plain = _plain(form, payload)
            value = next(each for each in self.claims.sent[on_the_bus] if as_payload(each) == plain)
            self.claims.has(on_the_bus, value)

    def unanswered(self) -> object:
        return self._asked


def as_payload(value: bytes) -> bytes:
    """Return what a value is to subscribers of pub/sub: what a string or binary holds, of all else its encoding."""
    holds_bytes = 0xA0 <= value[0] < 0xC0 or value[0] in (0xC4, 0xC5, 0xC6, 0xD9, 0xDA, 0xDB)
    found: bytes = msgpack.unpackb(value, raw=True) if holds_bytes else value
    return found


def _plain(form: bytes, payload: bytes) -> bytes:
    if not form or not form[1] & pubsub.COMPRESSED:
        return payload
    try:
        return pubsub.inflate(payload)
    except ValueError:
        return payload  # nobody is given that
