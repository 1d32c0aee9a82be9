"""A core that is dropped as it is, as a simulation drops those of dead workers: nobody notices, and nothing is left."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Final

from tests.workers.core.test_links import LinkedHistory

STEPS: Final = 25
ROOM: Final = 12_000_000
"""Bytes that Python may have taken meanwhile; each core that has ever had a call has three pools of 64 to 192 KiB."""


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def drop_some(seed: int) -> None:
    history = LinkedHistory(seed)
    for _ in range(STEPS):
        history.step()
    cluster = history.cluster
    cells = [
        (memory, bytes(memory)) for worker in cluster.workers for memory in (worker.memory, worker.turn.hand.memory)
    ]
    wires = [wire_ for world in cluster.worlds for wire_ in world.wires.values()]
    closed = [wire_.is_closed for wire_ in wires]
    dropped = [weakref.ref(worker) for worker in cluster.workers]
    del history, cluster
    gc.collect()
    assert [ref() for ref in dropped] == [None] * len(dropped), "a test that keeps it tests nothing"
    assert [bytes(memory) for memory, _ in cells] == [before for _, before in cells], "nothing is counted, or told"
    assert [wire_.is_closed for wire_ in wires] == closed


def test_nobody_notices_and_nothing_is_left() -> None:
    for seed in range(10):
        drop_some(seed)
    before = resident()
    for seed in range(10, 40):
        drop_some(seed)
    assert resident() - before < ROOM
