"""The demo of a cluster: what it shows and counts as nodes come and go, and that it leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from skywalker import extras
from tests.cli.running import end, run, started_anew
from tests.cli.terminal import on_terminal
from tests.discovery import consul_agent
from tests.helpers import eventually

QUICKLY = ("--seconds", "2", "--rate", "800")
IN_CONSUL = ("--discovery", "consul")
SLOWLY = ("--seconds", "600", "--rate", "400")


@pytest.fixture
def consul_path() -> str:
    """A PATH with a real Consul in it."""
    consul_agent.require()
    return os.pathsep.join([str(Path(consul_agent.program() or "").parent), os.environ.get("PATH", "")])


def number(screen: str, label: str) -> float:
    found = re.search(rf"^  {label} +([0-9,.]+)  ", screen, re.MULTILINE)
    assert found, screen
    return float(found[1].replace(",", ""))


def assert_told_in_order(screen: str, events: Sequence[str]) -> None:
    at = 0
    for event in events:
        found = re.compile(rf"^ +[0-9.]+ s   {event}", re.MULTILINE).search(screen, at)
        assert found, f"{event!r} is not told, or not in its place:\n{screen}"
        at = found.end()


def assert_all_happened(screen: str) -> None:
    assert_told_in_order(
        screen,
        [
            "red, green, blue are one ring",
            "green is killed",
            r"ring: green \(.*\) left",
            "yellow is started",
            r"ring: yellow \(.*\) joined",
            "red is told to end",
            r"ring: red \(.*\) left",
        ],
    )
    assert number(screen, "sent") > 1000


def assert_all_went_well(screen: str) -> None:
    assert_all_happened(screen)
    assert number(screen, "lost") == 0
    assert number(screen, "received") == number(screen, "sent") + number(screen, "doubled")
    assert "nothing was lost" in screen


def test_nothing_is_lost_of_a_cluster_whose_nodes_find_each_other_by_silk_and_come_and_go(tmp_path: Path) -> None:
    # There is no Consul, and nothing else either.
    ran = run("demo-cluster", *QUICKLY, PATH=str(tmp_path))
    screen = ran.stdout.decode()
    assert ran.returncode == 0, screen + ran.stderr.decode()
    assert ran.stderr == b""
    assert re.search(r"^  nodes +3, which .* by Silk: each is told of one, 127\.0\.0\.1:[0-9]+$", screen, re.MULTILINE)
    assert "without" not in screen
    assert_all_went_well(screen)
    assert "\x1b" not in screen
    # A line for each second, whatever happens, and one at the end.
    seconds = [float(text) for text in re.findall(r"^ +([0-9.]+) s +[0-9,]+ lines/s", screen, re.MULTILINE)]
    *each, end = seconds
    assert each == pytest.approx([*range(1, len(each) + 1)], abs=0.9)
    assert each[-1] <= end <= each[-1] + 1.9
    assert len(seconds) >= 3


def read_until(stream: object, text: bytes) -> bytes:
    shown = b""
    while text not in shown:
        data = os.read(stream.fileno(), 65536)  # type: ignore[attr-defined]
        assert data, shown
        shown += data
    return shown


def takers_of(demo: int) -> list[psutil.Process]:
    takers = []
    for each in psutil.Process(demo).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # those of green may be ending just now
            if "skywalker.cli.demo.taker" in each.cmdline():
                takers.append(each)
    return takers


def test_without_pyzmq_nodes_go_by_a_list_and_what_a_taker_takes_to_its_grave_is_told_and_makes_the_status_1(
    tmp_path: Path,
) -> None:
    # A directory where Python looks first, with one that cannot be imported in place of the real one.
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['zmq'] = None\n")
    with started_anew("demo-cluster", *QUICKLY, PYTHONPATH=str(tmp_path)) as process:
        screen = read_until(process.stdout, b"lines/s   ").decode()
        takers = takers_of(process.pid)
        assert len(takers) == 2
        takers[0].kill()
        screen += read_until(process.stdout, b" lost\n\n").decode()
        assert end(process) == 1
    assert f"without Silk: finding nodes by Silk needs pyzmq: {extras.command_for('silk')}" in screen
    assert "by a list" in screen
    assert_all_happened(screen)
    lost = number(screen, "lost")
    assert lost > 50
    assert f"{lost:,.0f} lost" in screen
    assert number(screen, "received") == number(screen, "sent") - lost + number(screen, "doubled")


@pytest.mark.parametrize(
    ("discovery", "moment", "columns", "looks"),
    [
        ("silk", b"skywalker demo-cluster", 80, {}),
        ("silk", b"yellow is started", 80, {"NO_COLOR": "1"}),
        ("consul", b"nodes ", 80, {"TERM": "dumb"}),
        ("list", b"on their way", 40, {}),
    ],
)
def test_ctrl_c_at_any_moment_leaves_nothing_behind_and_the_terminal_is_respected(
    discovery: str, moment: bytes, columns: int, looks: dict[str, str], tmp_path: Path, consul_path: str
) -> None:
    variables = {"TMPDIR": str(tmp_path), "PATH": consul_path, **looks}
    arguments = ("demo-cluster", *QUICKLY, "--discovery", discovery)
    with on_terminal(*arguments, columns=columns, **variables) as (terminal, process):
        terminal.shows(moment, within=20.0)
        family = psutil.Process(process.pid).children(recursive=True)
        terminal.press(b"\x03")
        shown = terminal.read_to_the_end()
        assert end(process) == 130, shown.decode()
        assert b"Traceback" not in shown, shown.decode()
        eventually(lambda: not any(child.is_running() for child in family), within=10.0)
    assert list(tmp_path.iterdir()) == []
    if looks:
        assert not re.search(rb"\x1b\[[0-9;]*m", shown), "it has colours"
        assert (b"\x1b" in shown) is ("TERM" not in looks)
    if columns == 40:
        assert not re.search(rb"\x1b\[[0-9]*[FJK]", shown), "it is too narrow to be drawn over"


def test_a_killed_demo_leaves_no_process_and_no_file_behind(tmp_path: Path, consul_path: str) -> None:
    with started_anew("demo-cluster", *IN_CONSUL, *SLOWLY, TMPDIR=str(tmp_path), PATH=consul_path) as process:
        read_until(process.stdout, b"lines/s   ")
        family = psutil.Process(process.pid).children(recursive=True)
        assert {"consul"} <= {child.name() for child in family}
        process.send_signal(signal.SIGKILL)
        eventually(lambda: not any(child.is_running() for child in family), within=10.0)
    assert list(tmp_path.iterdir()) == []
