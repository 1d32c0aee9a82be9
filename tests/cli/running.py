"""The real `skywalker` command, run to its end or watched while it runs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, TypeVar

from skywalker.cli import main
from tests.helpers import time_factor

SKYWALKER = str(Path(sys.executable).with_name("skywalker"))
END_S = 20.0

T = TypeVar("T", "Running", subprocess.Popen[bytes])

# Processes that have loaded what commands load begin in a millisecond, not in a hundred.
_LOADED = multiprocessing.get_context("forkserver")
_LOADED.set_forkserver_preload([__name__, "tests.cli.loaded"])


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
            fd = given.detach()
            os.dup2(fd, end)
            os.close(fd)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(directory)
        sys.argv = [SKYWALKER, *arguments]
        main()


class Running:
    """A command that was begun by a process that has loaded all, with what tests use of a Popen."""

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        theirs = (theirs_in, theirs_out, theirs_err)
        self.args = ["skywalker", *arguments]
        self.stdin, self.stdout, self.stderr = open(ours_in, "wb"), open(ours_out, "rb"), open(ours_err, "rb")  # noqa: SIM115
        self._process = _LOADED.Process(target=_Command(arguments, variables, os.getcwd(), theirs))
        self._process.start()
        for end in theirs:
            os.close(end)
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its status, once it has ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return its status, None if it has not ended."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return its status once it has ended. Raises TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # its parent has seen its end, and is about to tell us
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        """End its input, and return all that it says. Raises TimeoutExpired."""
        with contextlib.suppress(OSError):
            self.stdin.close()
        said: dict[IO[bytes], bytes] = {}
        ends = self.stdout, self.stderr
        readers = [threading.Thread(target=lambda end=end: said.update({end: end.read()}), daemon=True) for end in ends]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return said[self.stdout], said[self.stderr]


@contextmanager
def started(*arguments: str, node: str = "", **variables: str) -> Iterator[Running]:
    """Start the command with pipes at all its ends; it does not outlive the block."""
    if node:
        variables["SKYWALKER_NODE"] = node
    with _ended(Running(arguments, environment(**variables))) as process:
        yield process


@contextmanager
def started_anew(
    *arguments: str, node: str = "", pipes: dict[str, Any] | None = None, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start it in a new Python, whose beginning matters, or which has children; some `pipes` may be other files."""
    ends: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if node:
        variables["SKYWALKER_NODE"] = node
    command = [SKYWALKER, *arguments]
    with _ended(subprocess.Popen(command, env=environment(**variables), **(ends | (pipes or {})))) as process:
        yield process


@contextmanager
def _ended(process: T) -> Iterator[T]:
    try:
        yield process
    finally:
        process.kill()
        # Not communicate(): a test may have closed a pipe.
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def end(process: Running | subprocess.Popen[bytes]) -> int:
    """Wait for the command's end and return its status."""
    return process.wait(END_S * time_factor())
