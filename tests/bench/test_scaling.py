"""The command: a short run on real nodes, its numbers, and that nothing of it is left."""

import json
from pathlib import Path

from tests.bench.running import run
from tests.helpers import time_factor


def test_every_case_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = ["--workers=1,2", "--shape=1x64", "--shape=6x1", "--runs=1", f"--seconds={0.2 * time_factor():g}"]
    run("bench.scaling", *options, f"--json={file}", f"--plot={file.with_suffix('.svg')}")
    assert "rendezvous" in file.with_suffix(".svg").read_text()
    cases = [
        (case["workers"], case["mode"], case["pairs"], case["in_flight"], case["route"])
        for case in json.loads(file.read_text())["cases"]
    ]
    assert cases == [
        (1, "closed-loop", 1, 64, "any"),
        (1, "closed-loop", 6, 1, "any"),
        (1, "lockstep", 16, 1, "any"),
        (2, "closed-loop", 1, 64, "any"),
        (2, "closed-loop", 1, 64, "direct"),
        (2, "closed-loop", 6, 1, "any"),
        (2, "closed-loop", 6, 1, "direct"),
        (2, "lockstep", 16, 1, "any"),
    ]
