"""The real `skywalker` command, run to its end or watched while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers import time_factor

SKYWALKER = str(Path(sys.executable).with_name("skywalker"))
END_S = 20.0


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without any of skywalker's own variables, but for these; root stays root."""
    if os.geteuid() == 0:
        variables = {"SKYWALKER_USER": "root"} | variables
    return {name: value for name, value in os.environ.items() if not name.startswith("SKYWALKER_")} | variables


def run(*arguments: str, stdin: bytes = b"", node: str = "", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end, talking to `node`; no traceback may be seen, whatever it is asked."""
    if node:
        variables["SKYWALKER_NODE"] = node
    ran = subprocess.run(
        [SKYWALKER, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        timeout=END_S * time_factor(),
        check=False,
    )
    assert b"Traceback" not in ran.stderr, ran.stderr.decode()
    return ran


@contextmanager
def started(
    *arguments: str, node: str = "", pipes: dict[str, Any] | None = None, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command with pipes at all its ends but for those given; it does not outlive the block."""
    ends: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if node:
        variables["SKYWALKER_NODE"] = node
    process = subprocess.Popen([SKYWALKER, *arguments], env=environment(**variables), **(ends | (pipes or {})))
    try:
        yield process
    finally:
        process.kill()
        # Not communicate(): a test may have closed a pipe.
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def end(process: subprocess.Popen[bytes]) -> int:
    """Wait for the command's end and return its status."""
    return process.wait(END_S * time_factor())
