"""Threads of a simulated process."""

from __future__ import annotations

import pytest

from tests.simulation.kernel import Kernel
from tests.simulation.threads import Thread, sleep


@pytest.mark.parametrize("stood_still_s", [0.0, 2.0])
def test_a_thread_sleeps_as_long_on_a_host_whose_clock_once_stood_still(stood_still_s: float) -> None:
    kernel = Kernel(1)
    kernel.suspend("host", stood_still_s)
    kernel.go_on(stood_still_s)
    woke: list[float] = []

    def nap() -> None:
        for _ in range(3):
            sleep(kernel, 0.5)
            woke.append(kernel.now)

    began = kernel.now
    Thread(kernel, "napper", "host", nap)
    kernel.go_on(10.0)
    assert woke == pytest.approx([began + 0.5, began + 1.0, began + 1.5], abs=0.01)
