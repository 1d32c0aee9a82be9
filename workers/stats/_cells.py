"""Compiled code adds to shared memory by a C pointer, which _cells.pxd takes; plain Python does as if it did."""

from __future__ import annotations


def cells_in(memory: memoryview[int]) -> memoryview[int]:
    """Return what `cells[at] += 1` adds to `memory` with."""
    return memory
