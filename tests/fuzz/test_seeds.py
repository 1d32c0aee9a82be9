"""Every target holds for its seeds and some mutations of them.

In a process of their own: the targets have a clock of theirs put in place of the workers'.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutations
from tests.fuzz.targets import LONGEST, NAMES, inputs_in, seeds_of
from tests.helpers import time_factor

ROOT = Path(__file__).parents[2]
MUTATIONS = 200


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each target."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--mutate", str(MUTATIONS)],
        cwd=tmp_path_factory.mktemp("fuzz"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100 * time_factor(),
    )
    print(done.stdout)
    return {line.partition(":")[0]: line for line in done.stdout.splitlines() if " inputs, " in line}


@pytest.mark.timeout(300)  # the first one waits for what is said of all
@pytest.mark.parametrize("target", NAMES)
def test_a_target_holds(said: dict[str, str], target: str) -> None:
    count = len(inputs_in(seeds_of(target))) + MUTATIONS
    assert said.get(target, "it failed, see above").startswith(f"{target}: {count} inputs, ")


def test_each_target_has_seeds_that_are_short_enough() -> None:
    assert NAMES
    for name in NAMES:
        seeds = inputs_in(seeds_of(name))
        assert len(seeds) >= 5, name
        assert max(map(len, seeds)) <= LONGEST, name


def test_the_same_seed_makes_the_same_mutations() -> None:
    sources = [b"abc", bytes(range(50))]
    made = list(mutations(sources, 100, 1))
    assert made == list(mutations(sources, 100, 1))
    assert made != list(mutations(sources, 100, 2))
    assert len({*made}) > 90
