"""The subscribers at one other worker, to topics whose values it asks of us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.junction import Call, Junction, Subscriber
from skywalker.wire import values
from skywalker.wire.junction import NIL
from workers.calls.call import NodeCall
from workers.calls.interests import Interests
from workers.calls.publication import Publication
from workers.calls.worker_states import Standing
from workers.engine.loop import Alarm, Turn
from workers.mesh.messages import LAGGED, OFFER, SUBSCRIBED, Messages, wrapped
from workers.stats.log import Log

BEHIND_BYTES: Final = 512 * 1024
"""Bytes queued for a worker, besides what the kernel holds for it, from which on what is published waits for it."""

MAX_COUNT: Final = 2**32
"""Subscribers of one topic at one worker: more than there can be, and few enough to be added up."""

STUCK_S: Final = 1.0
"""Seconds for it to catch up. Then it gets no more, and closes the connections that therefore miss something."""


class RemoteInterest(Subscriber):
    """Those of one topic, as one subscriber."""

    __slots__ = ("_all", "asked", "changes", "stands")

    def begin_for(self, remote_interests: RemoteInterests) -> None:
        """Set up what it has besides begin()."""
        self.audience = 0
        self.asked = 0  # what it will be once all that was asked is in effect
        self.changes = 0  # of which are not yet in effect
        self.stands = False  # in the junction
        self._all = remote_interests

    def give(self, send: Call) -> bool:
        assert isinstance(send, NodeCall)
        return self._all.give(self, send)

    def cut_off(self) -> None:
        """Values for it were dropped on their way here."""
        self._all.drop(self)


class _Change:
    """An interest that is to be `count` strong, until that is in effect."""

    __slots__ = ("_all", "_count", "_interest")

    def __init__(self, remote_interests: RemoteInterests, interest: RemoteInterest, count: int) -> None:
        self._all = remote_interests
        self._interest = interest
        self._count = count

    def in_effect(self) -> None:
        self._all.settle(self._interest, self._count)


class RemoteInterests:
    """All of one worker."""

    def __init__(
        self,
        messages: Messages,
        turn: Turn,
        junction: Junction,
        standing: Standing,
        interests: Interests,
        log: Log,
        expect: Callable[[bytes, NodeCall], bytes],
    ) -> None:
        """`expect` returns a number for a value of a topic; the other worker says by that whether anybody got it."""
        self._messages = messages
        self._turn = turn
        self._junction = junction
        self._standing = standing
        self._interests = interests
        self._log = log
        self._expect: Callable[[bytes, NodeCall], bytes] | None = expect
        self._by_topic: dict[bytes, RemoteInterest] = {}
        self.delayed: list[Publication] = []  # what waits for the other worker to have caught up
        self._stuck = Alarm()

    def ask(self, topic: bytes, count: int) -> None:
        """The other worker has `count` subscribers to a topic, and wants to know when that is in effect."""
        if self._standing.replaced and not self._messages.abroad:
            self._messages.tell(SUBSCRIBED, topic)  # it asks our successor, too
            return
        interest = self._by_topic.get(topic)
        if interest is None:
            interest = self._by_topic[topic] = RemoteInterest.__new__(RemoteInterest)
            interest.begin(topic, self._turn.now, None, None)
            interest.begin_for(self)
        by, interest.asked = count - interest.asked, count
        interest.changes += 1
        if self._messages.abroad:
            self.settle(interest, count)  # what another node asks stays here, whatever our ring says
        else:
            self._interests.change(topic, by, _Change(self, interest, count))

    def settle(self, interest: RemoteInterest, count: int) -> None:
        """Have an interest be that strong, and say so."""
        if self._messages.closed:
            return
        self._messages.tell(SUBSCRIBED, interest.topic)
        if self._by_topic.get(interest.topic) is not interest:
            return  # it was retired meanwhile
        self._junction.resize(interest, count)
        interest.changes -= 1
        if not count:
            self._leave(interest)
            if not interest.changes:
                del self._by_topic[interest.topic]
        elif not interest.stands:
            interest.stands = True
            if self._messages.abroad:
                self._junction.subscribe(interest)
            else:
                self._interests.stand(interest)

    def _leave(self, interest: RemoteInterest) -> None:
        interest.stands = False
        if self._messages.abroad:
            self._junction.unsubscribe(interest)
        else:
            self._interests.leave(interest)

    def give(self, interest: RemoteInterest, send: NodeCall) -> bool:
        """Pass a value on; what became of one whose sender waits for that, the other worker says later."""
        messages = self._messages
        if messages.closed:
            return False
        if messages.congested():
            self.drop(interest)
            if isinstance(send, Publication):
                self._delay(send)  # or who is killed just now has acked it, and told nobody what was dropped
            return False
        assert send.value is not None, "it is a send"
        value, form = send.value, NIL
        if send.form:
            value, form = wrapped(value, send.form)
        if not send.answered:
            assert self._expect is not None, "the link has not ended"
            messages.tell(OFFER, interest.topic, self._expect(interest.topic, send), value, form)
            return True
        number = send.goes_to(messages) if isinstance(send, Publication) else NIL
        messages.tell(OFFER, interest.topic, number, value, form)
        if isinstance(send, Publication) and messages.unsent > BEHIND_BYTES:
            self._delay(send)
        return False

    def _delay(self, publication: Publication) -> None:
        publication.delays += 1
        self.delayed.append(publication)
        if self._stuck.at is None:
            self._stuck.set(self._turn, self._turn.now + STUCK_S, self._is_stuck)

    def drop(self, interest: RemoteInterest) -> None:
        """Give it nothing more until it asks anew, and have it know."""
        if interest.stands:
            self._leave(interest)
            self._messages.tell(LAGGED, interest.topic)

    def flushed(self) -> None:
        """Some of what was said is written, and something is delayed."""
        if self._messages.unsent <= BEHIND_BYTES:
            self._go_on()

    def _go_on(self) -> None:
        self._stuck.off(self._turn)
        delayed, self.delayed = self.delayed, []
        for publication in delayed:
            publication.delayed_no_more()

    def _is_stuck(self) -> None:
        self._log.warning("worker-behind", unsent=self._messages.unsent, seconds=STUCK_S)
        for interest in [*self._by_topic.values()]:
            self.drop(interest)
        self._go_on()

    def close(self) -> None:
        """The link has ended: its subscribers are gone, or ask anew."""
        self.retire()
        self._go_on()
        self._expect = None  # the two refer to each other, and nothing is expected any more

    def retire(self) -> None:
        """Give them nothing any more: they ask another."""
        for interest in self._by_topic.values():
            self._leave(interest)
            if not self._messages.abroad:
                self._interests.change(interest.topic, -interest.asked, None)
        self._by_topic = {}


def count_of(packed: bytes) -> int:
    """Return what the other worker says is its number of subscribers. Raises ValueError if it is none."""
    count = values.unpack(packed)
    if not isinstance(count, int) or not 0 <= count <= MAX_COUNT:
        raise ValueError("no number of subscribers")
    return count
