"""The commands that measure nodes: a short run of each ends well, and has a row for each case."""

from __future__ import annotations

import re

import pytest

from bench import scraping
from bench.errors import BenchError
from skywalker.embedding import embedded
from tests.bench.running import run
from tests.helpers import time_factor

SECONDS = f"--seconds={0.2 * time_factor():g}"


SCALING = ["--workers=1,2", "--shape=1x64", "--shape=6x1", "--runs=1", SECONDS]


@pytest.mark.parametrize(
    ("command", "options", "row", "count"),
    [
        ("core", ["--quick", "--shape=1x64"], r"^(?:node|core|echo) ", 9),  # its version, its rate, its times
        ("nodes", ["--runs=1", SECONDS], r"^\| [123] nodes?[,\w ]* \|(?: [1-9][\d.]* [kM] \|){4} \d+ / \d+ us \|$", 3),
        ("scraping", ["--workers=1", "--runs=1", SECONDS], r"^ +1 +(?:alone|watched|flooded) +[1-9]", 3),
        (
            "scaling",
            ["--workers=1,2", "--shape=1x64", "--shape=6x1", "--runs=1", SECONDS],
            r"^ +[12]  \d pairs? x \d+ +(?:any|direct) +[1-9]",
            6,
        ),
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
