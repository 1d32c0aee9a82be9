"""What is asked of the worker that owns a topic besides calls, as the way to that worker sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Carrier(Protocol):
    """A way to an owner: a link, or where what is asked waits for one."""

    handle: int
    """By which the core has the link; 0 of none."""
    life: int
    """Of the worker behind it, as a cell of hands.py; 0 of one of another node, or of none."""

    @property
    def is_congested(self) -> bool:
        """Whether the owner is so far behind that it is asked nothing new."""

    def settle(self) -> None:
        """All that was asked before is asked."""

    def ask_census(self, question: Question, topic: bytes) -> None:
        """Ask who waits on a topic."""

    def forget(self, question: Question) -> None:
        """Do not wait for that any more."""

    def subscribe(self, interest: Interest) -> None:
        """Ask for the values of a topic, for as many as they are; the interest is told once that is in effect."""

    def split(self, topic: bytes, life: int, number: int) -> None:
        """Have a subscription come from the worker of that life, where it has that number, as splits.py says."""

    def unsubscribe(self, interest: Interest) -> None:
        """Ask for none any more."""

    def forget_interest(self, interest: Interest) -> None:
        """Tell it nothing more."""


class Question(Protocol):
    """A question to another worker; who asks it says by which way, and hears of it once."""

    carrier: Carrier | None
    number: int

    def answer(self, info: bytes) -> None:
        """This is what the other worker says."""

    def end(self) -> None:
        """It will not answer, or there is nothing to be said."""


class Knock:
    """A question that is asked only to hear that it is answered, or that it will not be."""

    def __init__(self, answered: Callable[[], None], ended: Callable[[], None]) -> None:
        """One of both is called, once."""
        self.carrier: Carrier | None = None
        self.number = 0
        self._answered = answered
        self.end = ended

    def answer(self, info: bytes) -> None:
        """It is."""
        self._answered()


class Interest(Protocol):
    """That of all who subscribe to one topic here, or through here, in its values, as interests.py keeps it up."""

    topic: bytes
    audience: int
    """How many they are."""

    def goes_by(self, carrier: Carrier) -> bool:
        """Return whether it is asked for by this way now."""

    def answered(self, by: Carrier) -> None:
        """What was asked longest ago is in effect where the topic is owned."""

    def lost(self, by: Carrier) -> None:
        """The carrier is gone, or another has its place."""

    def cut_off(self) -> None:
        """Values were lost on their way here."""
