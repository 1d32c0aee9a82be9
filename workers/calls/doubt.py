"""Why it is not known whether somebody took the value of a send, when that is to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.errors import OutcomeUnknown

# As the details of the error name it.
SILENT_OWNER: Final = "silent-owner"
LOST_OWNER: Final = "lost-owner"
LOST_LISTENER: Final = "lost-listener"
SILENT_LISTENER: Final = "silent-listener"

REASONS: Final[Mapping[str, str]] = {
    SILENT_OWNER: "the worker that owns the topic has not said in time what became of it",
    LOST_OWNER: "the worker that owns the topic was lost before it said what became of it",
    LOST_LISTENER: "a listener that may have it was lost, or its worker, before one of them said so",
    SILENT_LISTENER: "a listener was given it, and has not shown in time that it has all of it",
}
"""As its text says it."""


def unknown(why: str) -> OutcomeUnknown:
    """Return the error that says so."""
    return OutcomeUnknown(f"it is not known whether somebody took the value: {REASONS[why]}", {"why": why})
