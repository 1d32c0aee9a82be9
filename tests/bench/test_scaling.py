"""The command: a short run on real nodes, its numbers, and that nothing of it is left."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.bench.running import processes_of_session, run
from tests.helpers import eventually, time_factor

COMMAND = [sys.executable, "-m", "bench.scaling"]


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


def test_an_interrupt_leaves_nothing_running() -> None:
    with subprocess.Popen(
        [*COMMAND, "--seconds=60", "--workers=2"], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:

        def generating() -> bool:
            return any("bench.load.generator" in each.cmdline() for each in processes_of_session(process.pid))

        eventually(generating, within=20)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20 * time_factor())
    assert process.returncode != 0
    assert "Traceback" not in errors
    eventually(lambda: not processes_of_session(process.pid))
