"""Seeds, fresh ones each time; the same seed again; and safeguards that are switched off.

SKYWALKER_SIMULATED_S says for how many seconds fresh seeds run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import time_factor
from tests.simulation.plan import Plan, plan
from tests.simulation.run import run

ROOT = Path(__file__).resolve().parents[2]
FRESH_S = float(os.environ.get("SKYWALKER_SIMULATED_S", "60"))

SOON = (
    "a value is written before its sender is told true",
    "a value is asked back at the deadline",
    "without a last word it is not known",
    "what waited at a dead worker is issued again",
    "who takes a value tells the home of its sender, too",
    "who is doubtful stays so",
    "what a silent node has is in doubt",
    "a node counts though its source lists it no more",
    "a node whose connection is lost is dialled before it is out",
    "who joins goes to the others of whom it is told",
    "a repeated request is known",
)
"""Safeguards whose absence shows at once, in half a minute of one core: all of them take too long for each time."""


def ran(module: str, *arguments: str, seconds: float, **environment: str) -> str:
    """Return what it printed; it is to end well, and in time."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds * time_factor(),
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def trace(seed: int, **environment: str) -> str:
    return ran("tests.simulation", "--seed", str(seed), seconds=60, **environment)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    assert trace(seed, PYTHONHASHSEED="1") == trace(seed, PYTHONHASHSEED="2")


def test_a_run_does_not_depend_on_what_ran_before_it() -> None:
    first = run(1).trace
    run(2)
    assert run(1).trace == first


CORPUS = [
    line
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("line", CORPUS, ids=range(len(CORPUS)))
def test_what_was_found_before_holds_now(line: str) -> None:
    assert run(Plan.of(line) if line.startswith("{") else plan(int(line))).broken == []


def test_calls_are_under_way_when_something_happens() -> None:
    results = [run(seed) for seed in range(5)]
    assert sum(each.under_way for each in results) > 500
    assert sum(each.met for each in results) > 3000  # of 14,000 calls, on topics that nobody need subscribe to
    assert all(each.published > 300 for each in results)


# What fails is shrunk, which takes its time, and is printed then.
@pytest.mark.timeout(FRESH_S + 900)
def test_what_is_promised_holds() -> None:
    ran("tests.simulation", "--minutes", str(FRESH_S / 60), seconds=FRESH_S + 300)


@pytest.mark.timeout(600)
def test_it_is_noticed_if_a_safeguard_is_missing() -> None:
    ran("tests.simulation.ablations", "--seeds", "50", *SOON, seconds=300)
