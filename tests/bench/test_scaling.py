"""The command: a short run on real nodes, its numbers, and that nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import psutil
import pytest

from tests.helpers import eventually, time_factor

COMMAND = [sys.executable, "-m", "bench.scaling"]


def processes_of_session(session: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A short run's table and its JSON."""
    file = tmp_path_factory.mktemp("bench") / "result.json"
    options = ["--workers=1,2", "--shape=1x64", "--shape=6x1", "--runs=1", f"--seconds={0.2 * time_factor():g}"]
    options.append(f"--json={file}")
    options.append(f"--plot={file.with_suffix('.svg')}")
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        output, errors = process.communicate(timeout=60 * time_factor())
    assert process.returncode == 0, errors
    assert errors == ""
    assert processes_of_session(process.pid) == []
    assert "rendezvous" in file.with_suffix(".svg").read_text()
    return output, json.loads(file.read_text())


def test_every_case_is_measured(ran: tuple[str, dict[str, Any]]) -> None:
    cases = [
        (case["workers"], case["mode"], case["pairs"], case["in_flight"], case["route"]) for case in ran[1]["cases"]
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


def test_rates_agree_with_counts_and_cpu_time(ran: tuple[str, dict[str, Any]]) -> None:
    for case in ran[1]["cases"]:
        (run,) = case["runs"]
        assert 0.1 < run["seconds"] < 0.5 * time_factor()
        assert run["rate"] == pytest.approx(run["rendezvous"] / run["seconds"])
        assert run["rate_per_core"] == pytest.approx(run["rate"] / run["server_cores"])
        assert 0 < run["server_cores"] < case["workers"] + 1
        assert (case["rate"], case["rate_per_core"]) == (run["rate"], run["rate_per_core"])


def test_settings_and_every_row_are_printed(ran: tuple[str, dict[str, Any]]) -> None:
    lines = ran[0].splitlines()
    for name in ran[1]["settings"]:
        assert any(line.startswith(name) for line in lines)
    for case in ran[1]["cases"]:
        if case["mode"] == "closed-loop":
            assert any(f"{case['rate']:,.0f}" in line and f"{case['rate_per_core']:,.0f}" in line for line in lines)


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
