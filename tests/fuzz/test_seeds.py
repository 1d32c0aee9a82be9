"""Every target holds for its seeds and some mutations of them, with the same result compiled and plain.

In processes of their own: the targets have a clock of theirs put in place of the workers'.
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
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What is said of each target, as everybody runs it and plain."""
    running = {
        form: subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--mutate", str(MUTATIONS)],
            cwd=tmp_path_factory.mktemp(form),
            env={**os.environ, "PYTHONPATH": str(ROOT), "SKYWALKER_PURE": pure},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for form, pure in (("usual", "0"), ("plain", "1"))
    }
    try:
        output = {form: process.communicate(timeout=100 * time_factor())[0] for form, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.communicate()
    for form, text in output.items():
        print(f"{form}:\n{text}")
    return {
        form: {line.partition(":")[0]: line for line in text.splitlines() if " inputs, " in line}
        for form, text in output.items()
    }


@pytest.mark.timeout(300)  # the first one waits for what is said of all
@pytest.mark.parametrize("target", NAMES)
def test_a_target_holds_and_is_the_same_compiled_and_plain(said: dict[str, dict[str, str]], target: str) -> None:
    usual, plain = (said[form].get(target, "it failed, see above").split(", ") for form in ("usual", "plain"))
    assert usual[0] == f"{target}: {len(inputs_in(seeds_of(target))) + MUTATIONS} inputs"
    assert (usual[0], usual[-1]) == (plain[0], plain[-1]), "what comes of the inputs differs"


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
