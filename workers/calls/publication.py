"""What a connection publishes, until it is in effect."""

from __future__ import annotations

from skywalker.errors import RequestError
from skywalker.journal.record import PROMPT, PUBLISH
from skywalker.junction import Junction
from skywalker.wire.junction import NIL
from workers.calls.call import ClientCall


class Publication(ClientCall):
    """A value for all who listen now. It waits for nobody, only to be handed out where its topic is owned."""

    __slots__ = ("delays", "done", "place", "size")

    def begin_as(self, size: int) -> None:
        """Set up what it has besides begin() and begin_for(); `size` is in bytes, and the publisher's business."""
        self.size = size
        self.place = 0  # among all that its connection asks to have acked
        self.delays = 0  # links that are too far behind to hand it to them: it is in effect once they are not
        self.done = False

    def become(self, event: int) -> None:
        pass  # nobody keeps track of it as of a call that waits, since it has no time of its own

    def hold(self) -> None:
        pass

    def hand_out(self, junction: Junction) -> bool:
        """Give it to all who listen; return whether that is done, else met() is called once it is."""
        junction.publish(self)
        self.done = not self.delays
        return self.done

    def goes_to(self, messages: object) -> bytes:
        """It is to be written to another worker, which listens; return the number by which that one knows it."""
        return NIL

    def place_for(self, caller: object) -> int:
        return self.place if self.place and self.caller is caller else 0

    def delayed_no_more(self) -> None:
        """One of those links has caught up."""
        assert self.delays > 0, "it was delayed"
        self.delays -= 1
        if not self.delays:
            self.met()

    def note(self, outcome: int) -> None:
        assert self.value is not None, "it has one to publish"
        self.record(PUBLISH, outcome, len(self.value))

    def met(self) -> None:
        """It is in effect."""
        self.note(PROMPT)
        self.done = True
        self.caller.published(self)

    def fail(self, error: RequestError) -> None:
        # Nor does it need room.
        self.returned()

    def returned(self) -> None:
        # The worker that it was on its way to is gone. It may have handed it out before.
        if self.caller.routing.publish(self):
            self.met()
