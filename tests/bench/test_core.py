"""The command that measures the compiled core."""

from __future__ import annotations

import subprocess
import sys

from tests.test_layout import ROOT


def test_it_measures_all_three() -> None:
    command = [sys.executable, "-m", "bench.core", "--quick", "--shape=1x64"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for server in ("node", "core", "echo"):
        assert sum(line.startswith(f"{server} ") for line in lines) == 3  # its version, its rate, its times
    assert sum("wanted: 1,500,000" in line for line in lines) == 1
