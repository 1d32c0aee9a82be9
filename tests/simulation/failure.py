"""A plan in whose run something did not hold, how it fails, and the smallest part of it that fails in that way."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.simulation.apart import Died, apart
from tests.simulation.kernel import Listener
from tests.simulation.plan import Plan, plan
from tests.simulation.run import Result, run
from tests.simulation.shrink import Shrinker
from tests.simulation.story import Line, Story

SHRINK_S: Final = 60.0
"""Seconds for which smaller plans are looked for."""


@dataclass(frozen=True)
class Failure:
    """What did not hold, a line each, which begins with its kind."""

    lines: list[str]

    @property
    def kinds(self) -> frozenset[str]:
        """The rules that are broken, or what went wrong and where."""
        return frozenset(line.partition(":")[0] for line in self.lines)


def _failure_here(what: Plan, listener: Listener | None = None) -> tuple[Result | None, Failure | None]:
    """Run a plan; return what came of it, unless it came to no end, and what did not hold, if anything."""
    try:
        result = run(what, listener)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return None, Failure([f"{type(error).__name__} in {last.name}: {error}"])
    return result, Failure(result.broken) if result.broken else None


def failure_of(what: Plan, story: Story | None = None) -> tuple[Result | None, Failure | None]:
    """Run a plan; return what came of it, unless it came to no end, and what did not hold, if anything.

    It has a process of its own, since the core ends that where it meets a bug; then there is no `story`, either.
    """

    def tell() -> tuple[Result | None, Failure | None, list[Line]]:
        result, failure = _failure_here(what, story)
        gc.collect()  # cores of its processes are dropped as they are, which has to go well, too
        return result, failure, [] if story is None else story.lines

    try:
        result, failure, lines = apart(tell)
    except Died as died:
        return None, Failure([f"AssertionError: {died}"])
    if story is not None:
        story.lines = lines
    return result, failure


def fails_as(failure: Failure, what: Plan) -> bool:
    """Return whether a plan fails in one of the ways that another did."""
    _, found = failure_of(what)
    return found is not None and bool(found.kinds & failure.kinds)


def shrunk(seed: int) -> str:
    """Return the smallest part that is found of what fails in a seed, and what happened in it, in words."""
    _, failure = failure_of(plan(seed))
    assert failure is not None, "the same seed gives the same run"
    began = time.monotonic()
    smallest = Shrinker(plan(seed), lambda smaller: fails_as(failure, smaller), SHRINK_S).shrink()
    took, story = time.monotonic() - began, Story()
    _, found = failure_of(smallest, story)
    assert found is not None, "or it would not have been taken"
    return "\n".join(
        [
            "",
            f"The smallest part of seed {seed} that fails in this way, of those looked at in {took:.0f} s:",
            *_indented(str(smallest).splitlines()),
            "What happened in it:",
            *_indented(story.about(found.lines)),
            "What did not hold:",
            *_indented(found.lines),
            "To see it again, or to keep it in tests/simulation/corpus.txt:",
            f"    python -m tests.simulation --plan '{smallest.text()}'",
        ]
    )


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
