"""What a node tells the manager that started it, and that nothing a manager does harms the node."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from workers.process.notify import Notifier


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address.replace("@", "\0", 1))
        sock.settimeout(5)
        yield sock


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "path" else f"@skywalker-test/{tmp_path}"


def test_each_message_is_one_datagram_in_the_words_of_sd_notify(address: str) -> None:
    with manager(address) as sock, closing(Notifier.from_environ({"NOTIFY_SOCKET": address})) as notifier:
        notifier.ready()
        notifier.status("two\nlines  of text")
        notifier.alive()
        notifier.stopping(12.5)
        notifier.stopping()
        said = [sock.recv(4096).decode() for _ in range(5)]
    assert said == [
        "READY=1",
        "STATUS=two lines of text",
        "WATCHDOG=1",
        "STOPPING=1\nEXTEND_TIMEOUT_USEC=12500000",
        "STOPPING=1",
    ]


def test_a_reload_says_when_it_began_on_the_monotonic_clock(address: str) -> None:
    with manager(address) as sock, closing(Notifier.from_environ({"NOTIFY_SOCKET": address})) as notifier:
        before = time.monotonic()
        notifier.reloading()
        notifier.takes(30)
        fields = dict(line.split("=", 1) for line in sock.recv(4096).decode().split("\n"))
        assert sock.recv(4096) == b"EXTEND_TIMEOUT_USEC=30000000"
    assert fields.keys() == {"RELOADING", "MONOTONIC_USEC"}
    assert fields["RELOADING"] == "1"
    assert before - 0.001 <= int(fields["MONOTONIC_USEC"]) / 1e6 <= time.monotonic()


def test_children_find_no_manager_in_the_environment(address: str) -> None:
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/"}
    Notifier.from_environ(environ).close()
    assert environ == {"HOME": "/"}


@pytest.mark.parametrize("given", ["", "relative", "vsock:2:1234"])
def test_without_a_manager_that_it_can_reach_it_says_nothing(given: str) -> None:
    notifier = Notifier.from_environ({"NOTIFY_SOCKET": given} if given else {})
    notifier.ready()
    notifier.status("anything")
    notifier.stopping()


def test_a_manager_that_is_gone_or_new_or_never_reads_harms_nobody(address: str) -> None:
    with closing(Notifier.from_environ({"NOTIFY_SOCKET": address})) as notifier:
        notifier.ready()  # it is not there yet
        with manager(address) as sock:
            started = time.monotonic()
            for _ in range(10_000):  # far more than fit
                notifier.status("x" * 1000)
            assert time.monotonic() - started < 5
            assert sock.recv(4096).startswith(b"STATUS=x")
        notifier.alive()
        if not address.startswith("@"):
            os.unlink(address)
        with manager(address) as sock:
            notifier.ready()
            assert sock.recv(4096) == b"READY=1"
