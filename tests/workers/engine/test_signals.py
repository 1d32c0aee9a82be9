"""Signals are queued where a loop can read them, and nothing else happens when they come."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator

import pytest

from workers.engine.signals import Signals

WANTED = (signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Give the test process its signals back."""
    kept = {number: signal.getsignal(number) for number in (*WANTED, signal.SIGHUP)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.fixture
def signals() -> Iterator[Signals]:
    signals = Signals(WANTED, ignored=[signal.SIGHUP])
    signals.open()
    yield signals
    signals.close()


def is_readable(signals: Signals, within: float = 0.0) -> bool:
    return bool(select.select([signals], [], [], within)[0])


def test_signals_are_read_in_the_order_they_came(signals: Signals) -> None:
    for number in (signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(os.getpid(), number)
    assert is_readable(signals, within=1.0)
    assert signals.read() == [signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR2]
    assert not is_readable(signals)
    assert signals.read() == []


def test_an_ignored_signal_is_not_even_queued(signals: Signals) -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    assert not is_readable(signals)


def test_a_signal_interrupts_a_wait(signals: Signals) -> None:
    pid = os.fork()
    if not pid:
        os.kill(os.getppid(), signal.SIGUSR1)
        os._exit(0)
    assert is_readable(signals, within=5.0)
    assert signals.read() == [signal.SIGUSR1]
    os.waitpid(pid, 0)


def test_signals_that_are_held_come_when_they_are_released(signals: Signals) -> None:
    signals.hold()
    signal.raise_signal(signal.SIGUSR1)  # to this thread: a timer thread of the test runner holds nothing
    assert not is_readable(signals)
    signals.release()
    assert signals.read() == [signal.SIGUSR1]


def test_a_flood_of_signals_blocks_nobody(signals: Signals) -> None:
    for _ in range(20_000):
        os.kill(os.getpid(), signal.SIGUSR1)
    assert is_readable(signals)
    assert set(signals.read()) == {signal.SIGUSR1}


def test_one_that_is_opened_later_takes_over_and_the_earlier_one_says_so() -> None:
    first, second = Signals(WANTED), Signals(WANTED)
    first.open()
    second.open()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert second.read() == [signal.SIGUSR1]
    assert first.read() == []
    with pytest.raises(RuntimeError, match="another owner"):
        first.close()
    for each in (first, second):
        each.close()
