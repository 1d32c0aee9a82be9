"""The link to one other worker, of this node or of another: its handle, and what is asked and said over it but calls.

The core reads and writes it, and has the calls that go over it, both ways. It ends with either worker. What the
owner of a topic held for the other is gone then, as its clients are; what waited at the owner is issued again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final

from skywalker.members import Place
from skywalker.wire import frames, pubsub, values
from skywalker.wire.junction import NIL
from workers.calls import census
from workers.calls.inquiries import Interest, Question
from workers.core._core import Core
from workers.engine.loop import Turn
from workers.engine.transport import Transport
from workers.mesh.messages import (
    CENSUS,
    COUNTED,
    CUT,
    INQUIRE,
    LAGGED,
    OFFER,
    PUBLISH,
    RELAY,
    RETIRED,
    SETTLED,
    SPLIT,
    SUBSCRIBE,
    SUBSCRIBED,
    VISIT,
)
from workers.mesh.remote_interests import RemoteInterests, count_of
from workers.mesh.stream import OTHER_WAY, Listener, Stream

OURS: Final = 0x4F << 56 | 1 << 55
"""What numbers of questions begin with, in a cell of hands.py: those of calls begin otherwise, or are not as high."""


class Link:
    """Our end of one, once it is opened(). `life` is that of the other end, as a cell of hands.py, if it is a sibling.

    `ended` is called, with the reason, once there is nothing more to read; `settled` when the other end has said all
    that it subscribes to; `visit` when that wants us to go to somebody, and is to call what it is given once we have;
    `retired` when one of another node hands out nothing more, since it has a successor.
    """

    __slots__ = (
        "_asked", "_core", "_ended", "_interests", "_mesh_bytes", "_questions", "_relay", "_retired", "_settled",
        "_turn", "_visit", "closed", "handle", "life", "place", "remote_interests", "streams", "transport",
    )  # fmt: skip

    def __init__(
        self,
        turn: Turn,
        mesh_bytes: int,
        life: int,
        place: Place | None,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None] | None = None,
        visit: Callable[[bytes, Callable[[], None]], None] | None = None,
        retired: Callable[[], None] | None = None,
    ) -> None:
        """`place` is that of an owner; without one, the other end only asks us.

        Of `mesh_bytes` that wait to be written to one worker, that one is taken to be behind.
        """
        self._turn = turn
        self._core: Core = turn.core
        self._mesh_bytes = mesh_bytes
        self._ended: Callable[[Link, str], None] | None = ended
        self._settled = settled
        self._visit = visit
        self._retired = retired
        self._asked = 0
        self._questions: dict[int, Question] = {}
        self._interests: dict[bytes, Interest] = {}  # by topic
        self.streams: dict[int, Stream] = {}  # that pass over it, by the numbers by which the other end says them
        self._relay: Callable[[Link, int, bytes], None]
        self.closed = False
        self.handle = 0
        self.life = life
        self.place = place
        self.remote_interests: RemoteInterests
        self.transport: Transport | None = None  # of one that is secure

    def opened(
        self,
        handle: int,
        remote_interests: RemoteInterests,
        transport: Transport | None,
        relay: Callable[[Link, int, bytes], None],
    ) -> None:
        """The core has it. `relay` is called when the other end opens a stream, with its number and first word."""
        self._relay = relay
        self.handle = handle
        self.remote_interests = remote_interests
        self.transport = transport

    # What it is.

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written."""
        return self._core.unsent(self.handle)

    @property
    def is_congested(self) -> bool:
        return self.unsent > self._mesh_bytes

    @property
    def parts(self) -> bool:
        """Whether the other end has said that it goes, as is planned."""
        return self._core.parts(self.handle)

    def is_decided(self) -> bool:
        """Return whether every value that was given to who listens there, or came from there, has its outcome."""
        return self._core.is_decided(self.handle)

    @property
    def subscribes(self) -> bool:
        """Whether it has values of topics come from there."""
        return bool(self._interests)

    def asks_nothing(self) -> bool:
        """Return whether no call of ours waits there, and every value that it gave has its outcome."""
        return self._core.asks_nothing(self.handle)

    def last_used(self) -> float:
        """Return when something was said over it last; inf while either end waits for the other, or subscribes.

        Of what passes over it for others, too.
        """
        is_used = self._interests or self._questions or self.streams
        return math.inf if is_used else self._core.last_used(self.handle)

    def is_unused(self) -> bool:
        """Return whether neither end does."""
        return self.last_used() < math.inf

    # What we have it do.

    def pause(self) -> None:
        """Read no more until told to go on."""
        self._core.pause_link(self.handle)

    def go_on(self) -> None:
        """Read on."""
        self._core.hear_link(self.handle)

    def catch_up(self) -> None:
        """Hear now what has come already, since something is about to be decided."""
        self._core.catch_up(self.handle)

    def attend(self, via: int, read: int) -> None:
        """Read and write what passes over another link, by that handle, once what is being dealt with is.

        So many bytes of all that was written the other end has `read`.
        """
        self._core.attend_link(self.handle, via, read)

    def read_to_the_end(self) -> None:
        """Take in all that a dead worker still said."""
        self._core.read_to_the_end(self.handle)

    def comes_before(self, heir: Link) -> None:
        """Hear nothing of the heir, to the successor of the other end, before the last that this one hands out."""
        self._core.comes_before(self.handle, heir.handle)

    def retired(self) -> None:
        """That was the last."""
        self._core.retired(self.handle)

    def retire(self) -> None:
        """Hand out nothing any more: the other worker asks our successor."""
        self.remote_interests.retire()
        self._core.say(self.handle, RETIRED)

    def finish(self) -> None:
        """Say nothing more, but that this is planned; the other end closes once it has heard all."""
        self._core.finish_link(self.handle)

    def close(self, reason: str) -> None:
        """Close this end."""
        self._core.close_link(self.handle, reason.encode())

    # What we ask.

    def settle(self) -> None:
        for interest in [*self._interests.values()]:
            if not interest.goes_by(self):  # it was, before this was left for another link
                self.unsubscribe(interest)
                self.forget_interest(interest)
        self._core.say(self.handle, SETTLED)

    def subscribe(self, interest: Interest) -> None:
        self._interests[interest.topic] = interest
        self._core.say(self.handle, SUBSCRIBE, topic=interest.topic, value=values.pack(interest.audience))

    def split(self, topic: bytes, life: int, number: int) -> None:
        self._core.say(self.handle, SPLIT, number, topic=topic, life=life)

    def unsubscribe(self, interest: Interest) -> None:
        self._core.say(self.handle, SUBSCRIBE, topic=interest.topic, value=values.pack(0))

    def forget_interest(self, interest: Interest) -> None:
        if self._interests.get(interest.topic) is interest:
            del self._interests[interest.topic]

    def ask_census(self, question: Question, topic: bytes) -> None:
        self._core.say(self.handle, CENSUS, self._number(question), topic=topic)

    def ask_to_visit(self, question: Question, whom: bytes) -> None:
        """Have one that is being replaced go to somebody."""
        self._core.say(self.handle, VISIT, self._number(question), value=whom)

    def inquire(self, question: Question, life: int) -> None:
        """Ask what is known of a dead one of that life; all of it is told once that is answered."""
        self._core.say(self.handle, INQUIRE, self._number(question), life=life)

    def _number(self, question: Question) -> int:
        self._asked += 1
        question.carrier, question.number = self, OURS | self._asked
        self._questions[question.number] = question
        return question.number

    def forget(self, question: Question) -> None:
        self._questions.pop(question.number, None)

    # What passes over it.

    def open_stream(self, listener: Listener) -> Stream:
        """Return a new one."""
        self._asked += 1
        return Stream(self, (OURS | self._asked) ^ OTHER_WAY, listener)

    def say_of(self, number: int, word: bytes) -> None:
        """Say a word of the stream of that number."""
        self._core.say(self.handle, RELAY, number, value=word)

    def _passes(self, number: int, word: bytes) -> None:
        stream = self.streams.get(number)
        if stream is not None:
            stream.listener.heard(stream, word)
        elif number >> 56 == OURS >> 56:
            self._relay(self, number, word)

    # What the other end says.

    def hear(
        self, kind: int, number: int, topic: bytes | None, value: bytes | None, form: bytes | None, life: int
    ) -> None:
        """Deal with a message that is not about calls. Raises ValueError if that makes no sense."""
        if kind == COUNTED:
            self._counted(number, value)
        elif kind == SETTLED:
            if self._settled is not None:
                self._settled(self)
        elif kind == VISIT:
            if self._visit is not None:
                self._visit(value or b"", functools.partial(self._counts, number, NIL))
        elif kind == RETIRED:
            if self._retired is not None:
                self._retired()
        elif kind == RELAY:
            self._passes(number, value or NIL)
        elif kind == CUT:
            self.remote_interests.cut(life, number)
        elif topic is None:
            raise ValueError(f"message {kind} about nothing")
        elif kind == SUBSCRIBE:
            self.remote_interests.ask(topic, count_of(value or b""))
        elif kind == SPLIT:
            self.remote_interests.split(topic, life, number)
        elif kind == CENSUS:
            self._counts(number, census.info(self._core, topic, self._turn.now))
        elif kind in (PUBLISH, OFFER) and form is not None:
            plain = pubsub.bus_value(pubsub.inflate(form[pubsub.FORM :]))
            self._core.hear(self.handle, kind, number, topic, plain, form)
        elif (interest := self._interests.get(topic)) is not None:
            if kind == SUBSCRIBED:
                interest.answered(self)
            elif kind == LAGGED:
                interest.cut_off()

    def _counts(self, number: int, info: bytes) -> None:
        self._core.say(self.handle, COUNTED, number, value=values.pack(info))

    def _counted(self, number: int, value: bytes | None) -> None:
        question = self._questions.pop(number, None)
        if question is None:
            return
        info = values.unpack(value or NIL)
        if isinstance(info, bytes) and frames.is_value(info):
            question.answer(info)
        else:
            question.end()  # a client could not read it

    # The end.

    def has_ended(self, reason: str) -> None:
        """Nothing is asked of us any more over it."""
        self.closed = True
        self.remote_interests.close()
        if self.transport is not None:
            self.transport.close()
        ended, self._ended = self._ended, None
        self._settled = self._visit = self._retired = None  # whoever is told refers to this
        assert ended is not None, "it ends once"
        ended(self, reason)
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.listener.cut(stream)

    def is_over(self) -> None:
        """And what we asked goes elsewhere."""
        questions, self._questions = self._questions, {}
        for question in questions.values():
            question.end()  # by which younger calls may be let go, so the older ones come first
        for interest in [*self._interests.values()]:
            interest.lost(self)
