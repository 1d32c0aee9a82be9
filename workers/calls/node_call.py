"""A call as the connections of a node see it, whichever of its workers has the caller."""

from __future__ import annotations

from skywalker.junction import Junction
from skywalker.limits import WAITING_CALL_BYTES
from skywalker.line import Call


class NodeCall(Call):
    """One of them: a client's of ours, of another worker, or what one offers to ours."""

    __slots__ = ("abandoned", "form", "given", "given_to", "too_long")

    def begin(self, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> None:
        Call.begin(self, topic, since, value, group)
        # Of a send: whether its time is over, so that nobody may have the value any more to whom it is not being
        # written; and the listeners that may have it and must be asked then, those of other workers' clients at least.
        self.abandoned = False
        self.given_to: list[NodeCall] | None = None
        self.too_long = 0  # once somebody could not take its value for its length: bytes that it might have
        self.form = b""  # of what was published with them: hint and flags, and the payload if that is compressed
        self.given: NodeCall | None = None  # of a listener: whose value it was given, until that has its outcome

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it while it waits."""
        value = self.value if self.value is not None else self.group
        return WAITING_CALL_BYTES + len(self.topic) + (0 if value is None else len(value))

    def meet(self, junction: Junction) -> bool:
        """Meet whoever is in the junction; return False if nobody is."""
        return junction.listen(self) if self.value is None else junction.send(self)

    def hold(self) -> None:
        """Run the caller's clock from now on, if it does not yet: this turn will not bring the outcome."""

    def sender(self) -> NodeCall:
        """Return the send whose value this listener was given."""
        assert self.given is not None, "it was given a value"
        return self.given

    def decided(self) -> NodeCall:
        """Return the same, and forget it: the outcome is known."""
        send = self.sender()
        self.given = None
        return send

    def recall(self, told: bool) -> bool:
        """Take back the value that this listener was given; return False if that is too late, or not known yet.

        What this turn is still to write is taken back only if its sender was `told` that nobody came.
        """
        raise NotImplementedError

    def catch_up(self) -> None:
        """Hear now what has been said already of the value that this listener was given."""

    def remember(self, listener: NodeCall) -> None:
        """This listener may have the value, and must be asked for it if nobody may have it any more."""
        if self.given_to is None:
            self.given_to = []
        self.given_to.append(listener)

    def given_here(self, listener: NodeCall) -> None:
        """A client of this worker has been given the value, and will have it unless it is recalled."""

    def place_for(self, caller: object) -> int:
        """Return which of all that `caller` asks to have acked this is, counted from 1; 0 if it is another's."""
        return 0

    def ask_back(self, told: bool) -> None:
        """Take the value of a send, whose caller may have been `told` so, back from where it is not being written yet.

        If it is from everywhere, the send has missed(); else the word of those who may have it decides that.
        """
        self.abandoned = True
        is_back = True
        for listener in self.given_to or ():
            if listener.given is self:
                is_back = listener.recall(told) and is_back
        if is_back and not self.answered:
            self.missed()

    def abandon(self) -> None:
        """Its caller expects nothing more of it: take the value back, if it has one."""
        self.answered = True
        self.ask_back(True)
        if self.value is not None:
            self.value = b""  # who has been given it may refer to this call for long
