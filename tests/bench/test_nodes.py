"""The benchmark of forwarding between nodes, on real ones."""

from __future__ import annotations

import re

from bench.nodes import NODES, RATES, bench, table
from tests.helpers import time_factor


def test_every_case_is_measured_and_has_its_place_in_the_table() -> None:
    said: list[str] = []
    samples = bench(1, 0.1 * time_factor(), said.append)
    assert len(said) == len(samples.samples) == 5 * len(NODES)
    assert all(sample.rendezvous > 0 and sample.server_cores > 0 for [sample] in samples.samples.values())
    head, _, *rows = table(samples)
    assert len(rows) == len(NODES)
    for row in rows:
        assert row.count("|") == head.count("|")
        assert re.search(r"[1-9]\d* / [1-9]\d* us", row)
    one, two = (samples.samples[RATES[0], count][0].rate_per_core for count in (1, 2))
    assert two < one, "half of the calls were forwarded, which is not for nothing"
