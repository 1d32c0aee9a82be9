"""Values on their way: the sends that are not answered yet, as the frames that go out and come back.

Knows no socket and no clock. An id is used again once its send is answered, so that what stands before the topic is
encoded once for each id. The frame of a send is kept until it is answered, and goes out as it is over the next
connection if this one is lost: so its time starts anew then, as that of a receiver who has to come back too.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from skywalker import errors
from skywalker.errors import Busy, Cancelled, Draining, OutcomeUnknown, RemoteProtocolError, RequestError, TooLarge
from skywalker.limits import MAX_FRAME
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame, skip, split
from skywalker.wire.junction import CANCEL, NIL, PING, RING, SEND, TIMED_OUT, TRUE, frame, refusal

MOST: Final = 60_000
"""Sends that can be under way: an id has 16 bits."""

_FIRST_ID: Final = 0x100
"""From here on ids have the same size, up to 65,535."""

_OWN_ID: Final = values.pack(-1)
"""Of every call that is no send; whatever it is answered is no outcome of one."""


class Flight:
    """The sends of one partition that are under way, and what became of the others."""

    def __init__(self, timeout_ms: int, window: int) -> None:
        """Send with a timeout of `timeout_ms`, and have `window` sends under way at most."""
        start, timeout = b"\x95" + SEND, values.pack(timeout_ms)
        self._heads = {id: start + id + timeout for id in (values.pack(_FIRST_ID + n) for n in range(window))}
        self._free = [*self._heads]
        self._under_way: dict[bytes, bytes] = {}  # id to frame, in the order in which they were first sent
        self._given_back: set[bytes] = set()  # of those, by a node that is going away
        self._refused: list[bytes] = []  # of those, by a node that was busy
        self._rest = b""  # of what came, not yet a frame
        self.output: list[bytes] = []  # frames to be written
        self.leaving = False  # whether the node goes away, and so gives back what it has
        self.handed_over = 0
        self.missed: Counter[bytes] = Counter()  # sends for which nobody came in time, by encoded topic
        # Sends that went out once more, since a connection was lost or the node could not know what became of them:
        # they may have met twice.
        self.issued_again = 0
        self.busy: Busy | None = None  # what the node said when it last was too busy for some

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        """Whether put() may be called."""
        return bool(self._free) and not self.leaving and not self._refused

    @property
    def is_left(self) -> bool:
        """Whether the node goes away and holds none of the sends any more."""
        return self.leaving and len(self._given_back) == len(self._under_way)

    @property
    def is_refused(self) -> bool:
        """Whether the node was too busy for some of the sends, which wait for try_again()."""
        return bool(self._refused)

    @property
    def answered(self) -> int:
        """How many sends have had an outcome."""
        return self.handed_over + self.missed.total()

    def put(self, topic: bytes, value: bytes) -> None:
        """Send an encoded value to an encoded topic. Raises TooLarge if they don't fit in a frame."""
        head = self._heads[self._free[-1]]
        size = len(head) + len(topic) + len(value)
        if size > MAX_FRAME:
            details = {"size": size, "limit": MAX_FRAME}
            raise TooLarge(f"a row for topic {shown(topic)} takes {size} bytes, limit is {MAX_FRAME}", details)
        call = b"".join((size.to_bytes(2, "big"), head, topic, value))
        self._under_way[self._free.pop()] = call
        self.output.append(call)

    def start_anew(self) -> None:
        """There is another connection: whatever is under way goes out again, in order."""
        self.issued_again += len(self._under_way) - len(self._given_back) - len(self._refused)
        self.leaving = False
        self._given_back.clear()
        self._refused.clear()
        self._rest = b""
        self.output = [*self._under_way.values()]

    def try_again(self) -> None:
        """Send what the node was too busy for."""
        self.output += [self._under_way[id] for id in self._refused]
        self._refused.clear()

    def probe(self) -> None:
        """Ask the node whether it lives."""
        self.output.append(frame(PING, _OWN_ID))

    def take(self, data: bytes) -> None:
        """Take what came, however it was cut.

        Raises RemoteProtocolError if the connection is of no more use, and what the node refused a send with if
        that is for good.
        """
        frames, self._rest = split(self._rest + data if self._rest else data)
        for elements in frames:
            if len(elements) == 3 and elements[2] == TRUE and elements[1] in self._under_way:
                self._end(elements[1])
                self.handed_over += 1
            else:
                self._take_other(elements)

    def _end(self, id: bytes) -> None:
        self._free.append(id)
        del self._under_way[id]

    def _topic(self, id: bytes) -> bytes:
        """Return the encoded topic of a send, whatever its value is."""
        call = self._under_way[id]
        start = 2 + len(self._heads[id])
        return call[start : skip(call, start, len(call))]

    def _take_other(self, elements: Frame) -> None:
        """Take what does not say that a value was handed over."""
        if isinstance(elements, BadFrame):
            raise RemoteProtocolError(f"the node sent what is no MessagePack array: {elements.reason}")
        match elements:
            case [method, id] if method == PING:
                self.output.append(frame(PING, id, TRUE))
            case [_, id, result] if id in self._under_way:
                self._missed_or_refused(id, result)
            case [_, id, result] if id == NIL:
                self._about_the_node(elements[0], result)
            case [_, id, _] if id == _OWN_ID:
                pass
            case _:
                raise RemoteProtocolError("the node sent what is neither a reply nor a ping")

    def _missed_or_refused(self, id: bytes, result: bytes) -> None:
        if result == TIMED_OUT:
            self.missed[self._topic(id)] += 1
            self._end(id)
            return
        error = refusal(values.unpack(result))
        if isinstance(error, Draining):
            self._given_back.add(id)
            self._leave()
        elif isinstance(error, Cancelled | Busy) and self.leaving:
            self._given_back.add(id)
        elif isinstance(error, Busy):
            self._refused.append(id)
            self.busy = error
        elif isinstance(error, OutcomeUnknown):
            # It may have been taken, as what was under way when a connection was lost, and that goes out again, too.
            self.issued_again += 1
            if self.leaving:
                self._given_back.add(id)
            else:
                self.output.append(self._under_way[id])
        elif error is None:
            raise RemoteProtocolError(f"the node answered a send with {values.unpack(result)!r:.100}")
        else:
            topic = shown(self._topic(id))
            if isinstance(error, errors.BadFrame):  # only what came encoded can make it one
                said = f"column 'value' of a row for topic {topic} is not one MessagePack value (its node: {error})"
            else:
                said = f"the node refused a row for topic {topic}: {error}"
            raise RequestError.from_wire(error.code, said, error.details)

    def _about_the_node(self, method: bytes, result: bytes) -> None:
        said = values.unpack(result)
        error = refusal(said)
        if error is not None:
            raise RemoteProtocolError(f"the node said: {error}")
        if method == RING and isinstance(said, dict) and said.get("leaving") is True:
            self._leave()

    def _leave(self) -> None:
        """Take every send back from a node that goes away, before another gets it: else one might be met at both."""
        if not self.leaving:
            self.leaving = True
            self._given_back.update(self._refused)
            self._refused.clear()
            waiting = [id for id in self._under_way if id not in self._given_back]
            self.output += [frame(CANCEL, _OWN_ID, id) for id in waiting]


def shown(topic: bytes) -> str:
    """Return an encoded topic for people."""
    try:
        return f"{values.unpack(topic)!r:.100}"
    except ValueError:
        return f"{topic!r:.100}"
