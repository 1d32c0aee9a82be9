"""What watches a node while it is measured: that it watches to the end, or says why not."""

from __future__ import annotations

import pytest

from bench import scraping
from bench.errors import BenchError
from bench.scraping import MODES, WATCHED
from skywalker.embedding import embedded
from tests.helpers import time_factor


def test_a_node_is_measured_alone_watched_and_flooded() -> None:
    seconds = 0.2 * time_factor()
    samples = scraping.bench((1,), 1, seconds, lambda words: None)
    rows = [line.split()[1] for line in scraping.lines(samples, 1, seconds) if line.split()[:1] == ["1"]]
    assert rows == [*MODES]


def test_a_run_in_which_it_stopped_answering_does_not_count() -> None:
    with (
        embedded(admin=True) as node,
        pytest.raises(BenchError, match="did not go on answering"),
        scraping._watching(node.admin_address, WATCHED),
    ):
        node.stop()
