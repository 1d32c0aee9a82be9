"""The commands that measure: a short run of each ends well, and has a row for each case."""

from __future__ import annotations

import re

import pytest

from bench import scraping
from bench.errors import BenchError
from skywalker.embedding import embedded
from tests.bench.running import run
from tests.helpers import time_factor

ONCE = ("--runs=1", "--seconds=0.2")
"""Whether it is long enough is seen by measure(), but not where programs are measured, or a node is watched."""
LONGER = ("--runs=1", f"--seconds={0.2 * time_factor():g}")


@pytest.mark.parametrize(
    ("command", "options", "row", "count"),
    [
        ("balance", ["--rings=2"], r"^\| [\d,]+ (?:nodes|topics|and one more) \|", 11),
        ("clients", [*LONGER], r"^(?:asyncio|blocking), \d+ pairs? +(?:skywalker|nats-py|redis-py) +[1-9]", 8),
        ("fanout", ["--load=1x1", "--subscribers=10", *ONCE], r"^ +10 +[-\w]+ +[1-9]", 5),
        ("growth", ["--most=100", *ONCE], r"^ +(?:1|10|100) +[1-9]", 9),
        ("nodes", [*ONCE], r"^\| [123] nodes?[,\w ]* \|(?: [1-9][\d.,]* [kM] \|){4} \d+ / \d+ us \|$", 3),
        ("scraping", ["--workers=1", *LONGER], r"^ +1 +(?:alone|watched|flooded) +[1-9]", 3),
        ("scaling", ["--workers=1,2", "--shape=6x1", *ONCE], r"^ +[12]  6 pairs x 1 +(?:any|direct) +[1-9]", 3),
        ("silk", ["--nodes=3,5"], r"^\| [35] \|", 6),
    ],
)
def test_every_case_is_measured(command: str, options: list[str], row: str, count: int) -> None:
    output = run(f"bench.{command}", *options)
    assert len(re.findall(row, output, re.MULTILINE)) == count, output


def test_a_run_in_which_a_node_stopped_answering_does_not_count() -> None:
    with (
        embedded(admin=True) as node,
        pytest.raises(BenchError, match="did not go on answering"),
        scraping._watching(node.admin_address, scraping.WATCHED),
    ):
        node.stop()
