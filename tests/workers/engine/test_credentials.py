"""A certificate that is renewed is taken, also if what stood in its way leaves no trace in its files."""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path

import pytest

from skywalker.errors import ConfigError
from skywalker.tls.contexts import server_context
from tests.authority import Authority
from workers.engine.credentials import LOOK_S, Renewed
from workers.stats.log import Log


class Files:
    """A certificate and its key, and who makes a context of them.

    `obstacle` says what is in the way, if anything, and `fault` why nobody would take it.
    """

    def __init__(self, directory: Path) -> None:
        self.obstacle = self.fault = ""
        self.made = 0
        self.now = 1000.0
        self._authority = Authority(directory)
        self._log = directory / "log"
        self.files = self._authority.sign("127.0.0.1")
        log = Log(time.monotonic, os.open(self._log, os.O_CREAT | os.O_WRONLY | os.O_APPEND))
        self.renewed = Renewed(self._make, self.files, lambda: self.fault, log, lambda: self.now)

    def _make(self) -> ssl.SSLContext:
        if self.obstacle:
            raise ConfigError(self.obstacle)
        self.made += 1
        return server_context(*self.files)

    def change(self) -> None:
        """Have a new certificate in the place of the old."""
        for file in self.files:
            os.unlink(file)
        assert self._authority.sign("127.0.0.1") == self.files

    def look(self) -> ssl.SSLContext:
        """Return what there is by the next look."""
        self.now += LOOK_S
        return self.renewed()

    def events(self) -> list[str]:
        """Return the events that were logged."""
        return [line.split(" event=")[1].split()[0] for line in self._log.read_text().splitlines()]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_files_that_stay_are_read_once(files: Files) -> None:
    first = files.renewed()
    assert all(files.look() is first for _ in range(3))
    assert files.made == 1


def test_files_that_change_are_read_at_the_next_look_and_not_before(files: Files) -> None:
    first = files.renewed()
    files.change()
    assert files.renewed() is first
    assert files.look() is not first
    assert files.events() == ["certificate-renewed"]


def test_what_failed_is_tried_until_it_goes_and_each_reason_is_told_once(files: Files) -> None:
    first = files.renewed()
    files.change()
    for files.obstacle in (
        "node.key cannot be read: Permission denied",
        "node.key cannot be read: Too many open files",
    ):
        assert all(files.look() is first for _ in range(3))
    files.obstacle = ""
    second = files.look()
    assert second is not first
    assert files.look() is second
    assert files.events() == ["certificate-not-renewed", "certificate-not-renewed", "certificate-renewed"]


def test_a_fault_that_comes_back_is_told_again(files: Files) -> None:
    files.renewed()
    for _ in range(2):
        for file in files.files:
            os.replace(file, f"{file}.old")
        files.obstacle = "node.pem cannot be read: No such file or directory"
        files.look()
        files.look()
        for file in files.files:
            os.replace(f"{file}.old", file)
        files.obstacle = ""
        files.look()
    assert files.events() == ["certificate-not-renewed"] * 2
    assert files.made == 1


def test_one_that_nobody_would_take_is_better_than_none_and_worse_than_what_there_is(files: Files) -> None:
    files.fault = "expired"
    first = files.renewed()
    assert files.look() is first
    files.change()
    assert files.look() is first
    files.fault = ""
    assert files.look() is not first
    assert files.events() == ["certificate-not-renewed", "certificate-renewed"]


def test_without_any_there_is_none(files: Files) -> None:
    files.obstacle = "node.key cannot be read: Permission denied"
    with pytest.raises(ConfigError):
        files.renewed()
    files.obstacle = ""
    files.look()
