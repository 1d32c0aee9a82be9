"""The tables of many nodes are made, of a few: all agree again and again, and what is promised holds meanwhile."""

from __future__ import annotations

import re

import pytest

from tests.chaos.many import FEWEST, WORKERS, run
from tests.cluster import network


@pytest.mark.timeout(180)
def test_all_nodes_agree_again_and_again(capfd: pytest.CaptureFixture[str]) -> None:
    network.require()
    broken = run(FEWEST, 1, idle_s=0.2, unused_s=0.0)
    assert not broken, broken[:10]
    printed = capfd.readouterr().out
    before, after, _ = map(int, re.findall(r"^\|.*? MB, (\d+) \|.*%", printed, re.MULTILINE))
    assert after >= before + (FEWEST - 1) * WORKERS, "each worker has called each other"
    [met] = re.findall(r"([\d,]+) of which met", printed)
    assert int(met.replace(",", "")) > 20
