"""The timers of the core against skywalker.deadlines: the same items are due at the same times, in the same order."""

from __future__ import annotations

import os
import random
from typing import Final

import pytest

from skywalker.deadlines import Deadlines
from tests.workers.core import _parts

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "400"))
DAY_S: Final = 86_400.0


@pytest.mark.parametrize("part", range(2))
def test_both_have_the_same_due(part: int) -> None:
    for seed in range(part * HISTORIES // 2, (part + 1) * HISTORIES // 2):
        history(random.Random(seed))


def history(luck: random.Random) -> None:
    old, table = Deadlines(), _parts.Table(None, luck.randbytes(16))
    now = luck.choice((0.0, luck.uniform(0, 1e7), luck.uniform(0, 1e9)))
    timeouts = [
        luck.choice((luck.uniform(0, 0.1), luck.uniform(0, 60.0), luck.uniform(0, DAY_S), 1.0)) for _ in range(5)
    ]
    at: dict[int, float] = {}
    rows = [table.new(_parts.KIND_RECV, b"\xa1a", 0.0) for _ in range(200)]
    for _ in range(300):
        free = [row for row in rows if row not in at]
        step = luck.random()
        if step < 0.6 and free:
            row = luck.choice(free)
            at[row] = now + luck.choice((*timeouts, luck.uniform(0, 0.1), luck.uniform(0, DAY_S), 0.0))
            old.add(row, at[row])
            table.add_timer(row, at[row])
        elif step < 0.8 and at:
            row = luck.choice([*at])
            old.discard(row, at.pop(row))
            table.remove_timer(row)
        else:
            wait = table.wait_for_timers(now)
            others = old.wait(now)
            assert (wait is None) == (others is None)
            assert wait is None or wait >= others  # the oracle may wake once for nothing
            now += luck.choice((0.0, 0.001, wait or 0.0, luck.uniform(0, 1.0), luck.uniform(0, DAY_S / 10)))
            due = old.due(now)
            assert table.due(now) == due
            for row in due:
                assert at.pop(row) <= now
    assert table.due(now + 2 * DAY_S) == old.due(now + 2 * DAY_S)
    assert table.wait_for_timers(now) is None
    for row in rows:
        table.free(row)


def test_one_that_is_due_can_be_put_off_by_another_that_is() -> None:
    """What was collected is looked at one by one: as Python's is, which asks each whether it still waits."""
    table = _parts.Table(None, bytes(16))
    one, other = (table.new(_parts.KIND_RECV, b"\xa1a", 0.0) for _ in range(2))
    for row in (one, other):
        table.add_timer(row, 1.0)
    table.remove_timer(other)
    assert table.due(2.0) == [one]
    for row in (one, other):
        table.free(row)
