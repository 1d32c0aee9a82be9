"""Clients that say anything, where each address and each integer of the core is checked: storm.c has them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers import time_factor
from tests.test_layout import ROOT

CORE = ROOT / "workers" / "core"
CHECKS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
INPUTS = int(os.environ.get("SKYWALKER_INPUTS", "10000"))


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("storm") / "storm"
    sources = [path for path in sorted(CORE.glob("[!_]*.c")) if path.name != "kernel.c"]
    sources.append(Path(__file__).with_name("storm.c"))
    subprocess.run(["cc", "-std=gnu11", *CHECKS, f"-I{CORE}", *sources, "-o", program], check=True)
    return program


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_core_bears_it_and_nothing_is_left(storm: Path, seed: int) -> None:
    limit = 60 * time_factor()
    done = subprocess.run([storm, str(seed), str(INPUTS)], capture_output=True, text=True, timeout=limit, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [int(number) for number in done.stdout.partition("of sends ")[2].split()]
    assert min(outcomes) > 0, "every outcome is met"
