"""The demo on a real node: what it shows, what it counts, and that it leaves nothing behind."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import psutil
import pytest

from skywalker.cli.demo.command import ADDRESS_TAKEN
from skywalker.limits import DEFAULT_PORT, DEFAULT_PUBSUB_PORT
from tests.cli.running import end, run
from tests.cli.terminal import on_terminal
from tests.helpers import eventually
from workers.ipc import exits


def number(screen: str, label: str) -> float:
    found = re.search(rf"^  {label} +([0-9,.]+)  ", screen, re.MULTILINE)
    assert found, screen
    return float(found[1].replace(",", ""))


def test_every_line_of_a_file_arrives_whatever_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"text\n\n\xff\xfe\n" + "ünï\n".encode() + b"x" * 100_000 + b"\nlast, without an end")
    ran = run("demo", str(file), "--seconds", "0.5")
    screen = ran.stdout.decode()
    assert ran.returncode == 0, screen
    assert number(screen, "sent") == number(screen, "received") > 10
    assert number(screen, "timed out") == 0
    assert 0 < number(screen, "p50") <= number(screen, "p99")
    assert "every line arrived exactly once" in screen
    assert "\x1b" not in screen


def test_without_a_file_it_finds_one_and_a_taken_port_is_told_and_another_one_used() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", DEFAULT_PORT))
            other.listen()
        except OSError:
            pass  # then somebody else has it, which is as good
        ran = run("demo", "--seconds", "0.2")
    assert ran.returncode == 0
    assert Path(re.search(r"^  file +(/.*)$", ran.stdout.decode(), re.MULTILINE)[1]).is_file()
    assert f"port {DEFAULT_PORT} or {DEFAULT_PUBSUB_PORT} is taken" in ran.stdout.decode()
    assert f"node       127.0.0.1:{DEFAULT_PORT}" not in ran.stdout.decode()
    assert exits.ADDRESS == ADDRESS_TAKEN


@pytest.mark.parametrize("moment", [b"skywalker demo", b"lines/s"])
def test_ctrl_c_at_any_moment_leaves_nothing_behind(moment: bytes, tmp_path: Path) -> None:
    with on_terminal("demo", "--seconds", "60", TMPDIR=str(tmp_path)) as (terminal, process):
        terminal.shows(moment)
        family = psutil.Process(process.pid).children(recursive=True)
        terminal.press(b"\x03")
        shown = terminal.read_to_the_end()
        status = end(process)
        assert status == 130, shown.decode()
        assert b"Traceback" not in shown
        eventually(lambda: not any(child.is_running() for child in family), within=10.0)
    assert list(tmp_path.iterdir()) == []
