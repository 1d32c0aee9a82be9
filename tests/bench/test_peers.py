"""The comparisons: short runs with every server, what they print and write, and how targets are judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.figures.samples import SHAPES, Mode, Sample
from bench.peers import LATENCY, Case, Comparison
from bench.servers import SERVERS
from tests.bench.running import run
from tests.helpers import time_factor

SECONDS = f"--seconds={0.1 * time_factor():g}"
"""Long enough for the CPU time of a server to be seen, which is told in hundredths of a second."""

PAGE = "# ours\n\n<!-- begin peers -->\nold\n<!-- end peers -->\n\nmore\n"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    """What a short comparison printed, its JSON, and the directory of what else it wrote."""
    folder = tmp_path_factory.mktemp("peers")
    for page in ("page.md", "another.md"):
        (folder / page).write_text(PAGE)
    pages = [f"--markdown={folder}/{page}" for page in ("page.md", "another.md")]
    files = [f"--json={folder}/all.json", *pages, f"--plot={folder}/all.svg"]
    output = run("bench.peers", "--runs=1", SECONDS, "--shape=1x64", "--shape=32x1", *files)
    return output, json.loads((folder / "all.json").read_text()), folder


def test_every_server_is_measured_in_every_shape_it_can_do(ran: tuple[str, dict[str, Any], Path]) -> None:
    seen = {(case["server"], case["mode"], case["pairs"], case["in_flight"]) for case in ran[1]["cases"]}
    shapes = [("closed-loop", 1, 64), ("closed-loop", 32, 1), ("lockstep", 1, 1)]
    assert seen == {(server, *shape) for server in SERVERS for shape in shapes} - {("redis", *shapes[0])}


def test_the_page_has_the_table_and_keeps_the_rest(ran: tuple[str, dict[str, Any], Path]) -> None:
    page = (ran[2] / "page.md").read_text()
    assert page.startswith("# ours\n\n<!-- begin peers -->\n|")
    assert page.endswith("<!-- end peers -->\n\nmore\n")
    assert "old" not in page
    assert (ran[2] / "another.md").read_text() == page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    table = rows[: 2 + len(SERVERS)]
    assert len({line.count("|") for line in table}) == 1
    for server in SERVERS:
        assert any(line.startswith(f"| {ran[1]['settings'][server]} |") for line in table)


def sample(rate: float, cores: float = 1.0, p99: float | None = None) -> Sample:
    return Sample(1.0, int(rate), int(rate), int(rate), rate, cores, 1.0, p99, p99)


def judged(ours: Sample, theirs: Sample, case: Case, peer: str) -> dict[str, bool]:
    found = Comparison({}, ["skywalker", peer])
    found.add(case, "skywalker", ours)
    found.add(case, peer, theirs)
    return {target.what: target.reached for target in found.targets() if target.what.endswith(peer)}


@pytest.mark.parametrize(
    ("shape", "peer", "times"),
    [("1x64", "nats", 2.5), ("8x64", "nats", 2.0), ("256x1", "redis", 1.15), ("32x1", "echo", 0.9)],
)
def test_a_target_is_reached_or_not_by_cost_and_not_by_speed(shape: str, peer: str, times: float) -> None:
    case = Case(Mode.CLOSED_LOOP, SHAPES[shape])
    theirs = sample(1000, 0.5)
    assert list(judged(sample(1000, 0.499 / times), theirs, case, peer).values()) == [True]
    assert list(judged(sample(9000, 4.51 / times), theirs, case, peer).values()) == [False]


def test_the_slowest_call_may_take_no_longer_than_that_of_redis() -> None:
    assert list(judged(sample(1, p99=80.0), sample(1, p99=80.0), LATENCY, "redis").values()) == [True]
    assert list(judged(sample(1, p99=81.0), sample(1, p99=80.0), LATENCY, "redis").values()) == [False]
