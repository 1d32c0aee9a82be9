"""Why there is no connection: in a few words for people, and for programs to decide by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from skywalker.errors import Why


class Cause(str):
    """What is said of it, and `why`, where that is known."""

    __slots__ = ("lasts", "why")

    why: Why | None
    lasts: bool
    """Whether another attempt would only be told the same."""

    def __new__(cls, text: str, why: Why | None = None) -> Self:
        cause = super().__new__(cls, text)
        cause.why = why
        cause.lasts = why is not None
        return cause

    @classmethod
    def of(cls, text: str) -> Cause:
        """Return a text as a cause, as it is if it is one."""
        return text if isinstance(text, Cause) else Cause(text)

    @classmethod
    def joined(cls, text: str, causes: Sequence[Cause]) -> Cause:
        """Return that of several attempts, said as `text`: it lasts if all of them do."""
        reasons = {cause.why for cause in causes} - {None}
        cause = cls(text, next((why for why in Why if why in reasons), None))
        cause.lasts = bool(causes) and all(each.lasts for each in causes)
        return cause
