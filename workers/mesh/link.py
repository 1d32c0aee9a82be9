"""The link to one other worker, of this node or of another: what we ask of it, what it asks of us, and the way between.

All that one turn has to say goes at once, as a rule. A link ends with either worker. What the
owner of a topic held for the other is gone then, as its clients are; what waited at the owner
is issued again.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, Final

from skywalker.wire import values
from skywalker.wire.junction import NIL
from workers.engine.loop import BROKEN, READ, WRITE, Loop, Turn
from workers.engine.points import reached
from workers.mesh.inbound import Inbound
from workers.mesh.kin import Kin
from workers.mesh.messages import (
    CENSUS,
    COUNTED,
    INQUIRE,
    LONG,
    PARTING,
    SETTLED,
    SUBSCRIBE,
    UNACKED,
    VISIT,
    Messages,
)
from workers.mesh.outbound import Outbound
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.states import CLOSE, CLOSED, GO_ON, LINK, OPEN, PAUSE, PAUSED

READS_PER_TURN: Final = 16

READS_TO_CATCH_UP: Final = 512
"""Batches that a sibling's socket holds at most, if each is small."""


class Link:
    """Our end of the link to one worker; `ended` is called, with the reason, once there is nothing more to read."""

    __slots__ = (
        "_barrier", "_caught_up_at", "_ended", "_is_hearing", "_kin", "_loop", "_messages", "_settled", "_state",
        "_turn", "_unheard", "_visit", "_waits_to_write", "inbound", "outbound",
    )  # fmt: skip

    def __init__(
        self,
        messages: Messages,
        loop: Loop,
        turn: Turn,
        barrier: ReadinessBarrier,
        outbound: Outbound,
        inbound: Inbound,
        ended: Callable[[Link, str], None],
        settled: Callable[[Link], None] | None = None,
        visit: Callable[[bytes, Callable[[], None]], None] | None = None,
        kin: Kin | None = None,
    ) -> None:
        """`settled` is called when the other end has said all that it subscribes to.

        `visit` is when that wants us to go to somebody, and is to call what it is given once we have. `kin` are all
        siblings, if it is one.
        """
        self._loop = loop
        self._turn = turn
        self._barrier = barrier
        self._ended: Callable[[Link, str], None] | None = ended
        self._settled = settled
        self._visit = visit
        self._kin = kin
        self._unheard: list[Any] = []  # what was read with the last that was to be heard for now
        self._messages = messages
        messages.link = self
        self.outbound = outbound
        self.inbound = inbound
        self._waits_to_write = False
        self._state = OPEN
        self._is_hearing = False
        self._caught_up_at = 0.0

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._state == CLOSED

    @property
    def life(self) -> bytes:
        """That of the other end, if it is a sibling."""
        return self._messages.life

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written."""
        return self._messages.unsent

    def open(self) -> None:
        """Read from now on."""
        self._loop.add(self._messages.fileno(), self)
        if self._messages.unsent:
            self.flush()

    def flush(self) -> None:
        """Write what the kernel takes; never waits."""
        if self._state != CLOSED:
            self._messages.flush()
            assert reached("a batch is written")
            self._wait_to_write(self._messages.unsent > 0)
            self.inbound.flushed()

    def _wait_to_write(self, wanted: bool) -> None:
        if self._waits_to_write != wanted:
            self._waits_to_write = wanted
            self._wait()

    def _wait(self) -> None:
        wanted = (READ if self._state != PAUSED else 0) | (WRITE if self._waits_to_write else 0)
        self._loop.change(self._messages.fileno(), wanted)

    def pause(self) -> None:
        """Read no more batches until told to go on."""
        self._state = LINK.after(self._state, PAUSE)
        self._wait()

    def go_on(self) -> None:
        """Read on."""
        self._state = LINK.after(self._state, GO_ON)
        if self._state != CLOSED:
            self._wait()
            self._turn.later.append(self)

    def attend(self) -> None:
        """Hear what came while nothing was heard: all of it, or a value would be handed out that is asked back."""
        if self._is_hearing:
            self._turn.later.append(self)  # in the order in which it was said: first the rest of this batch
            return
        for _ in range(READS_TO_CATCH_UP):
            if not self._read():
                return

    def ready(self, events: int) -> None:
        """Read what the other end says, and write on."""
        if events & WRITE:
            self.flush()
        if events & BROKEN:
            if self._unheard:
                self.close("the other end died before it was heard")
                return
            self._state = LINK.after(self._state, GO_ON)  # nothing but the end comes after what is there
        # More than once, because a value may come in one batch, and the word to take it back in a later one. A worker
        # that has been stopped for so long that there are more may be too late for it; others shall not wait for us.
        for _ in range(READS_PER_TURN):
            if not self._read():
                return

    def catch_up(self) -> None:
        """Hear now what has come already, since something is about to be decided; once a turn is enough."""
        now = self._turn.now
        if self._caught_up_at != now:
            self._caught_up_at = now
            for _ in range(READS_TO_CATCH_UP):
                if not self._read():
                    return

    def read_to_the_end(self) -> None:
        """Take in all that a dead worker still said."""
        while not self._is_hearing and self._read():
            pass

    def hear_the_last(self) -> None:
        """Do so whatever is to be heard first, as others wait for what became of it."""
        if self._unheard and not self._is_hearing:
            self.close("the other end died before it was heard")
        elif self._state == PAUSED:
            self._state = LINK.after(self._state, GO_ON)
        self.read_to_the_end()

    def _read(self) -> bool:
        """Take in one batch. Returns False if there is none now, or never will be."""
        if self._state == CLOSED or self._state == PAUSED:
            return False
        messages, self._unheard = self._unheard, []
        try:
            if not messages:
                messages = self._messages.read()
        except BlockingIOError:
            return False
        except EOFError as error:
            self.close(str(error) or "the other end closed it")
            return False
        except ValueError as error:
            self.close(f"the other end sent {error}")
            return False
        assert not self._is_hearing, "one batch after the other"
        self._is_hearing = True
        try:
            self._hear(messages)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if not self._messages.abroad:
                raise
            # Where, because it might be a mistake of ours.
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.close(f"the other end sent what makes no sense: {error!r} at {where.name}, line {where.lineno}")
            return False
        finally:
            self._is_hearing = False
        return True

    def _hear(self, messages: list[list[bytes]]) -> None:
        if self.inbound.standing.opening:
            messages = self._hear_early(messages)
        outbound, inbound, turn = self.outbound, self.inbound, self._turn
        for message in messages:
            kind = message[0][0]
            if kind <= CENSUS or kind in (LONG, UNACKED):
                inbound.hear(kind, message)
            elif kind == SETTLED:
                if self._settled is not None:
                    self._settled(self)
            elif kind == VISIT:
                if self._visit is not None:
                    self._visit(message[2], functools.partial(self._visited, message[1]))
            elif kind == INQUIRE:
                self._answer(message)
            else:
                outbound.hear(kind, message)
            if turn.later:
                turn.attend()
                if self._state == CLOSED:
                    return  # its calls are issued again, and what they said is not heard twice

    def _hear_early(self, messages: list[list[bytes]]) -> list[list[bytes]]:
        """Hear what the other end subscribes to, and no calls of it; return the rest once the worker has opened."""
        barrier, turn = self._barrier, self._turn
        for number, message in enumerate(messages):
            if not self.inbound.standing.opening:
                return messages[number:]
            kind = message[0][0]
            if kind == SETTLED and self._settled is not None:
                self._settled(self)
            elif kind == SUBSCRIBE:
                self.inbound.hear(kind, message)
            elif kind == INQUIRE:
                self._answer(message)
            elif kind > CENSUS:
                self.outbound.hear(kind, message)
            else:
                barrier.hold(self)
                self._unheard = messages[number:]
                return []
            if self._state == PAUSED:
                self._unheard = messages[number + 1 :]
                return []
            if turn.later:
                turn.attend()
                if self._state == CLOSED:
                    return []
        return []

    def _answer(self, message: list[bytes]) -> None:
        if self._kin is not None:
            self._kin.answer(message[2], functools.partial(self._visited, message[1]))

    def _visited(self, number: bytes) -> None:
        if self._state != CLOSED:
            self._messages.tell(COUNTED, number, values.pack(NIL))

    def finish(self) -> None:
        """Say nothing more, but that this is planned; the other end closes once it has heard all."""
        self.inbound.doubt_undecided()
        self._messages.tell(PARTING, NIL)
        self._messages.flush()
        self._messages.finish()

    def close(self, reason: str) -> None:
        """Close this end: what it held is gone, and what waits at the other end is issued again."""
        if self._state == CLOSED:
            return
        self._state = LINK.after(self._state, CLOSE)
        self._loop.remove(self._messages.fileno())
        self._messages.close()
        self.inbound.close()
        ended, self._ended, self._settled, self._visit = self._ended, None, None, None  # whoever is told refers to this
        assert ended is not None, "it ends once"
        ended(self, reason)
        self.outbound.close()
