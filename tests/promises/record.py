"""How a call of our client library has ended, as a history has it."""

from __future__ import annotations

from skywalker.errors import OutcomeUnknown, RequestError, SkywalkerError, TimedOut, Unreachable
from tests.promises.history import TIMED_OUT, UNKNOWN, UNREACHABLE


def answer_to(error: SkywalkerError) -> str:
    """Return what an error of the library says, in the words of a history."""
    match error:
        case OutcomeUnknown():
            return UNKNOWN
        case TimedOut():
            return TIMED_OUT
        case Unreachable():
            return UNREACHABLE
        case RequestError():
            return error.code
    return type(error).__name__
