"""What every test may use: waiting for a condition, and the one factor that stretches all times.

A test never sleeps for a fixed time. It says what it waits for and how long that may take on an idle machine;
SKYWALKER_TEST_TIME_FACTOR=5 gives a slow or loaded machine five times as long.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, TypeVar

T = TypeVar("T")

LONGEST_PAUSE_S = 0.05


class Clock:
    """The time of tests: that of the machine, unless a simulation is on, whose is virtual."""

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], None] = time.sleep
        self.is_virtual = False

    @contextlib.contextmanager
    def replaced(self, monotonic: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[None]:
        """Have it be another one for a while."""
        before = self.monotonic, self.sleep
        self.monotonic, self.sleep, self.is_virtual = monotonic, sleep, True
        try:
            yield
        finally:
            self.monotonic, self.sleep = before
            self.is_virtual = False


CLOCK: Final = Clock()


def time_factor() -> float:
    """How many times longer than stated anything may take here; read anew at each call.

    One in virtual time, which no other program takes any of.
    """
    if CLOCK.is_virtual:
        return 1.0
    text = os.environ.get("SKYWALKER_TEST_TIME_FACTOR", "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise ValueError(f"SKYWALKER_TEST_TIME_FACTOR is {text!r}; give a positive number, such as 2.5")
    return factor


def eventually(check: Callable[[], T], within: float = 5.0) -> T:
    """Call `check` until it returns something true, and return that.

    Raises AssertionError once `within` seconds (times the factor) are over, with the last value; an exception from
    `check` means "not yet", and is the cause of the AssertionError if it was the last thing that happened.
    """
    limit = within * time_factor()
    deadline = CLOCK.monotonic() + limit
    pause = 0.001
    while True:
        last_chance = CLOCK.monotonic() >= deadline
        try:
            value = check()
        except Exception as error:
            if last_chance:
                raise AssertionError(f"not within {limit:g} s; last try raised {error!r}") from error
        else:
            if value:
                return value
            if last_chance:
                raise AssertionError(f"not within {limit:g} s; last value was {value!r}")
        CLOCK.sleep(min(pause, max(0.0, deadline - CLOCK.monotonic())))
        pause = min(2 * pause, LONGEST_PAUSE_S)


def written_to(file: IO[bytes]) -> str:
    """Return what processes have written to a file so far.

    They share its position with us: to seek would have them write over what is there.
    """
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


@contextlib.contextmanager
def frozen(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Have a process hang for the length of a `with` block: the kernel takes its connections, it says nothing."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
