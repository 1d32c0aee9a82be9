"""What a check found."""

from __future__ import annotations

import dataclasses
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One line: of what, how bad, what was found, and what to do about it, empty if nothing."""

    name: str
    level: Level
    found: str
    advice: str = ""


def weighed(name: str, good: bool, found: str, advice: str, level: Level = "warn") -> Finding:
    """Return a finding that is ok if it is `good`, else of that level and with the advice."""
    return Finding(name, "ok", found) if good else Finding(name, level, found, advice)
