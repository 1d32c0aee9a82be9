"""What a worker may come to take, beside what it may have: a node that cannot keep its promise does not start."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker import memory
from skywalker.limits import KIB, MIB, Limits
from tests.cli.running import SKYWALKER, environment, run
from tests.helpers import eventually, time_factor
from tests.workers.processes import node
from tests.workers.wire_client import code_of
from workers.ipc import exits

LIMITED = "import os, resource, sys; resource.setrlimit({kind}, ({soft}, -1)); os.execv(sys.argv[1], sys.argv[1:])"


def limited(soft: int, kind: int = resource.RLIMIT_AS) -> list[str]:
    """Return a command that runs another in which each process may have so many bytes."""
    return [sys.executable, "-c", LIMITED.format(kind=kind, soft=soft)]


@given(st.integers(0, 1024 * MIB), st.integers(1, 64), st.integers(1, 2**34), st.integers(MIB, 64 * MIB))
def test_what_is_advised_is_enough_and_not_much_more_would_be(there: int, workers: int, most: int, mesh: int) -> None:
    limits = Limits(waiting_bytes=most, mesh_bytes=mesh)
    fitting = memory.waiting_bytes(limits, workers, there)
    if fitting:
        assert not memory.shortage(Limits(waiting_bytes=fitting, mesh_bytes=mesh), workers, there)
    more = Limits(waiting_bytes=fitting + 2 * MIB, mesh_bytes=mesh)
    assert "would die of it" in memory.shortage(more, workers, there)


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_a_node_whose_workers_would_die_of_what_they_may_hold_does_not_start(kind: int) -> None:
    command = [*limited(225 * MIB, kind), sys.executable, "-m", "workers", "--port=0", "--workers=1"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=20 * time_factor(), check=False
    )
    assert ran.returncode == exits.USAGE
    assert ran.stderr.startswith("skywalker: limits.waiting_bytes: a process may have 225MiB (ulimit -v), and a worker")
    assert "give waiting_bytes of at most 103MiB, or each process more, by ulimit -v or LimitAS=" in ran.stderr


def test_a_file_is_good_and_what_it_would_come_to_here_is_told(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text("workers = 1\n")
    assert run("check", str(file)).stderr == b""
    command = [*limited(225 * MIB), SKYWALKER, "check", str(file)]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=20 * time_factor(), check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"{file}: ok\n")
    assert ran.stderr.startswith(f"{file}: but a process may have 225MiB")


def test_with_as_much_as_it_may_come_to_take_a_worker_says_busy_and_lives() -> None:
    limits = Limits(waiting_bytes=24 * MIB)
    command = [*limited(memory.wanted(limits, 1)), sys.executable, "-m", "workers"]
    settings = ["--workers=1", "--waiting-bytes=24MiB", "--max-calls=100000"]
    with node(command=command, settings=settings) as running, running.connect() as client:
        value = b"x" * 32 * KIB
        for _ in range(24 * MIB // len(value)):
            client.begin(":send!", 60_000, "topic", value)
        assert code_of(client.answer, ":send!", 60_000, "topic", value) == "busy"
        with running.connect() as another:
            assert eventually(lambda: another.answer(":ping"))
        assert running.workers() == running.first_workers
