"""What is asked of the worker that owns a topic besides calls, as the way to that worker sees it."""

from __future__ import annotations

from typing import Protocol

from skywalker.junction import Subscriber


class Asked(Protocol):
    """The way by which it was asked."""

    def forget_census(self, call: Question) -> None:
        """Do not wait for that any more."""

    def forget_interest(self, interest: Interest) -> None:
        """Tell it nothing more."""


class Question(Protocol):
    """A question about a topic that another worker owns."""

    carrier: Asked | None
    number: bytes

    def answer(self, info: bytes) -> None:
        """This is what the owner counted."""

    def end(self) -> None:
        """The owner will not answer."""


class Interest(Protocol):
    """That of all who subscribe to one topic here, or through here, in its values, as interests.py keeps it up."""

    topic: bytes
    audience: int
    """How many they are."""

    def subscribers(self) -> list[Subscriber]:
        """Return those whose subscription is in effect."""

    def answered(self, by: Asked) -> None:
        """What was asked longest ago is in effect where the topic is owned."""

    def lost(self, by: Asked) -> None:
        """The carrier is gone, or another has its place."""

    def cut_off(self) -> None:
        """Values were lost on their way here."""
