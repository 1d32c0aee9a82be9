"""The subscribers at one other worker, to topics whose values it asks of us."""

from __future__ import annotations

from typing import Final

from skywalker.wire import values
from workers.calls.interests import Interests
from workers.calls.worker_states import Standing
from workers.core._core import Core
from workers.mesh.messages import CUT, LAGGED, SUBSCRIBED
from workers.stats.log import Log

MAX_COUNT: Final = 2**32 - 1
"""Subscribers of one topic at one worker: more than there can be, and what the core counts."""

STUCK_S: Final = 1.0
"""Seconds for it to catch up, as link.h has them. Then it gets no more, and closes connections that miss something."""


class RemoteInterest:
    """Those of one topic, as one subscriber: a row in the core."""

    __slots__ = ("_all", "asked", "changes", "is_over", "row", "stands", "topic")

    def __init__(self, remote_interests: RemoteInterests, topic: bytes, row: int) -> None:
        self._all = remote_interests
        self.topic = topic
        self.row = row
        self.asked = 0  # how many they will be once all that was asked is in effect
        self.changes = 0  # of which are not yet in effect
        self.stands = False  # where values meet
        self.is_over = False  # and the row is no more

    def cut_off(self) -> None:
        """Values for it were dropped on their way here, or there: give it nothing more until it asks anew."""
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
        core: Core,
        link: int,
        is_abroad: bool,
        both_ways: bool,
        standing: Standing,
        interests: Interests,
        log: Log,
        rows: dict[int, RemoteInterest],
    ) -> None:
        """The link goes by its handle, and we ask over it, too, if it goes `both_ways`.

        `rows` are the interests of all links by their rows, these among them.
        """
        self._core = core
        self._link = link
        self._is_abroad = is_abroad
        self._both_ways = both_ways
        self._standing = standing
        self._interests = interests
        self._log = log
        self._rows = rows
        self._by_topic: dict[bytes, RemoteInterest] = {}
        self._is_closed = False

    def ask(self, topic: bytes, count: int) -> None:
        """The other worker has `count` subscribers to a topic, and wants to know when that is in effect."""
        if self._standing.replaced and self._both_ways:
            self._core.say(self._link, SUBSCRIBED, topic=topic)  # it asks our successor, too
            return
        interest = self._by_topic.get(topic)
        if not count:
            self._dismiss(topic, interest)
            return
        if interest is None:
            interest = RemoteInterest(self, topic, self._core.interest(self._link, topic))
            self._by_topic[topic] = self._rows[interest.row] = interest
        by, interest.asked = count - interest.asked, count
        interest.changes += 1
        if self._is_abroad:
            self.settle(interest, count)  # what another node asks stays here, whatever our ring says
        else:
            self._interests.change(topic, by, _Change(self, interest, count))

    def _dismiss(self, topic: bytes, interest: RemoteInterest | None) -> None:
        """It asks for nothing more. All that it asked is answered at once, whatever we still wait for.

        That may be an answer of the very worker that has to hear this first, if the topic has moved from us to that.
        """
        self._core.say(self._link, SUBSCRIBED, topic=topic)
        if interest is None:
            return
        for _ in range(interest.changes):
            self._core.say(self._link, SUBSCRIBED, topic=topic)
        interest.changes = 0
        del self._by_topic[topic]
        self._let_go(interest)

    def settle(self, interest: RemoteInterest, count: int) -> None:
        """Have an interest be that strong, and say so."""
        if self._is_closed or not interest.changes:
            return
        interest.changes -= 1
        self._core.say(self._link, SUBSCRIBED, topic=interest.topic)
        if interest.is_over:
            return  # it was retired meanwhile
        self._stand(interest, count)

    def split(self, topic: bytes, life: int, number: int) -> None:
        """A subscription comes there from the worker of that life, with what is handed out next.

        Who has a successor is asked for nothing any more, and hands out nothing.
        """
        interest = self._by_topic.get(topic)
        if interest is None:
            return
        if not interest.stands:
            self._stand(interest, interest.asked)  # whatever that still waits for, the other one's stands already
        self._core.say(self._link, CUT, number, life=life)
        self._interests.splits.tell(life, number)

    def cut(self, life: int, number: int) -> None:
        """One that leaves the worker of that life has been split."""
        self._interests.splits.cut(life, number)

    def _stand(self, interest: RemoteInterest, count: int) -> None:
        self._core.resize(interest.row, count)
        if interest.stands:
            return
        interest.stands = True
        if self._is_abroad:
            self._core.stand(interest.row)
        else:
            self._interests.stand(interest)

    def _leave(self, interest: RemoteInterest) -> None:
        interest.stands = False
        if self._is_abroad:
            self._core.stand_no_more(interest.row)
        else:
            self._interests.leave(interest)

    def _let_go(self, interest: RemoteInterest) -> None:
        self._leave(interest)
        if not self._is_abroad:
            self._interests.change(interest.topic, -interest.asked, None)
        interest.is_over = True
        del self._rows[interest.row]
        self._core.end_interest(interest.row)

    def drop(self, interest: RemoteInterest) -> None:
        """Give it nothing more until it asks anew, and have it know."""
        if interest.stands:
            self._leave(interest)
            self._core.say(self._link, LAGGED, topic=interest.topic)

    def is_stuck(self) -> None:
        """The other worker has been too far behind for too long."""
        self._log.warning("worker-behind", unsent=self._core.unsent(self._link), seconds=STUCK_S)
        for interest in [*self._by_topic.values()]:
            self.drop(interest)

    def close(self) -> None:
        """The link has ended: its subscribers are gone, or ask anew."""
        self._is_closed = True
        self.retire()

    def retire(self) -> None:
        """Give them nothing any more: they ask another."""
        interests, self._by_topic = self._by_topic, {}
        for interest in interests.values():
            self._let_go(interest)


def count_of(packed: bytes) -> int:
    """Return what the other worker says is its number of subscribers. Raises ValueError if it is none."""
    count = values.unpack(packed)
    if not isinstance(count, int) or not 0 <= count <= MAX_COUNT:
        raise ValueError("no number of subscribers")
    return count
