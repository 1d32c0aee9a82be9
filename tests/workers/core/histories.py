"""Random histories, each from its seed; one that fails says which it was, and how it went last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

PARTS: Final = 4
"""Of all histories, so that several tests share the time that they take."""

LAST: Final = 16
"""Of what happened, besides how it began, so much is told."""


class History(Protocol):
    """Something that goes by steps, and raises if two do not do the same."""

    def step(self) -> None: ...
    def end(self) -> None: ...


def seeds(part: int, histories: int) -> range:
    """Return those of one part of so many."""
    return range(part * histories // PARTS, (part + 1) * histories // PARTS)


def live(history: History, seed: int, steps: int, log: Sequence[str] = ()) -> None:
    """Have so many steps, and the end; `log` is written meanwhile."""
    try:
        for _ in range(steps):
            history.step()
        history.end()
    except BaseException as error:
        error.add_note(f"seed {seed}\n" + "\n".join(each[:200] for each in [*log[:1], *log[-LAST:]]))
        raise
