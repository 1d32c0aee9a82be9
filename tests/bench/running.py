"""Benchmarks run as the commands that they are, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from tests.helpers import eventually, time_factor


def processes_of_session(session: int) -> list[psutil.Process]:
    """Return those of a session that have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def run(module: str, *options: str) -> str:
    """Run one to its end; return what it prints. Nothing may be left of it, nor may it complain."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        output, errors = process.communicate(timeout=100 * time_factor())
    assert process.returncode == 0, errors
    assert errors == ""
    # Of its children, one that multiprocessing has for itself ends only when it sees that its parent has.
    eventually(lambda: processes_of_session(process.pid) == [])
    return output
