"""The real `skywalker` command, run to its end or watched while it runs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from skywalker.cli import commands, main
from tests.helpers import time_factor

SKYWALKER = str(Path(sys.executable).with_name("skywalker"))
END_S = 20.0

# Processes that have loaded what commands load begin in a millisecond, not in a hundred.
_LOADED = multiprocessing.get_context("forkserver")
_LOADED.set_forkserver_preload(
    [__name__, "workers.setup.checking", *{*commands._HOMES.values()} - {commands._HOMES["top"]}]
)


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without any of skywalker's own variables, but for these; root stays root."""
    if os.geteuid() == 0:
        variables = {"SKYWALKER_USER": "root"} | variables
    return {name: value for name, value in os.environ.items() if not name.startswith("SKYWALKER_")} | variables


def run(*arguments: str, stdin: bytes = b"", node: str = "", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end, talking to `node`; no traceback may be seen, whatever it is asked.

    What is set for Python itself has a Python begin anew.
    """
    if node:
        variables["SKYWALKER_NODE"] = node
    began_anew = any(name.startswith("PYTHON") for name in variables)
    ran = (_run_anew if began_anew else _run_loaded)(arguments, stdin, environment(**variables))
    assert b"Traceback" not in ran.stderr, ran.stderr.decode()
    return ran


def _run_anew(
    arguments: Sequence[str], stdin: bytes, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    command, limit = [SKYWALKER, *arguments], END_S * time_factor()
    return subprocess.run(command, input=stdin, capture_output=True, env=variables, timeout=limit, check=False)


def _run_loaded(
    arguments: Sequence[str], stdin: bytes, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        asked.write(stdin)
        asked.seek(0)
        ends = (asked.fileno(), out.fileno(), err.fileno())
        process = _LOADED.Process(target=_Command(arguments, variables, os.getcwd(), ends))
        process.start()
        process.join(END_S * time_factor())
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["skywalker", *arguments], END_S * time_factor())
        said = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (out, err)]
        return subprocess.CompletedProcess(["skywalker", *arguments], process.exitcode, *said)


class _Command:
    """What a process that has loaded everything is to do; goes there as a pickle."""

    def __init__(
        self, arguments: Sequence[str], variables: Mapping[str, str], directory: str, ends: Sequence[int]
    ) -> None:
        self._given = arguments, variables, directory
        self._ends = ends

    def __getstate__(self) -> tuple[Any, ...]:
        return (*self._given, [DupFd(end) for end in self._ends])

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *self._given, self._ends = state

    def __call__(self) -> None:
        arguments, variables, directory = self._given
        for end, given in enumerate(self._ends):
            os.dup2(given.detach(), end)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(directory)
        sys.argv = [SKYWALKER, *arguments]
        main()


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
