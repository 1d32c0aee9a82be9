"""The comparisons: short runs with every server, what they print and write, and how targets are judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BenchError
from bench.figures import samples
from bench.figures.samples import LONGEST_S, SHAPES, Mode, Sample, measure
from bench.load.outcome import Outcome
from bench.load.plan import Counts, Load
from bench.peers import LATENCY, Case, Comparison
from bench.servers import SERVERS
from bench.servers.usage import Usage
from tests.bench.running import run

SECONDS = "--seconds=0.1"
"""More is taken where a server was not seen to work in that."""

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


LOAD = Load("127.0.0.1", 1, "idle", 1, 1)


def seen(rendezvous: int, cpu_s: float, seconds: float) -> Outcome:
    outcome = Outcome(LOAD, 0.0, 1)
    outcome.server = Usage(cpu_s, cpu_s / seconds, [])
    outcome.add(Counts(0, seconds=seconds, sent=rendezvous, received=rendezvous), 0.0)
    return outcome


@pytest.mark.parametrize("rendezvous", [0, 1])
def test_a_server_that_had_no_processor_meanwhile_is_given_more_time(
    monkeypatch: pytest.MonkeyPatch, rendezvous: int
) -> None:
    taken: list[float] = []

    def run(_: Load, seconds: float, **__: object) -> Outcome:
        taken.append(seconds)
        return seen(100, 0.5, seconds) if seconds > 0.7 else seen(rendezvous, 0.0, seconds)

    monkeypatch.setattr(samples, "run", run)
    assert measure(LOAD, 0.2, 1).server_cores == 0.5 / 0.8
    assert taken == [0.2, 0.4, 0.8]


def test_a_server_that_never_does_anything_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []

    def run(_: Load, seconds: float, **__: object) -> Outcome:
        taken.append(seconds)
        return seen(1, 0.0, seconds)

    monkeypatch.setattr(samples, "run", run)
    with pytest.raises(BenchError, match="no CPU time"):
        measure(LOAD, 0.2, 1)
    assert LONGEST_S <= taken[-1] < 2 * LONGEST_S


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
