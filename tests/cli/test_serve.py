"""`skywalker serve` and `python -m workers`: their options, and with which status they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skywalker.config import SETTINGS
from skywalker.embedding import Node
from tests.cli.running import end, environment, run, started_anew
from tests.helpers import eventually, time_factor
from workers.ipc import exits


@contextmanager
def serving(log: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run `skywalker serve` on a free port; yield it and its address once it says that it serves."""
    with log.open("wb") as stderr, started_anew("serve", "--port=0", *arguments, pipes={"stderr": stderr}) as process:
        said = eventually(lambda: re.search(r"event=serving .*host=(\S+) port=(\d+)", log.read_text()), within=15.0)
        yield process, f"{said[1]}:{said[2]}"


def blocked(pid: int) -> int:
    """Return the signals that a process keeps waiting, a bit each."""
    said = re.search(r"SigBlk:\s(\w+)", Path(f"/proc/{pid}/status").read_text())
    return int(said[1], 16) if said else 0


def test_help_shows_every_setting_with_its_default() -> None:
    shown = " ".join(run("serve", "--help").stdout.decode().split())
    for setting in (each for each in SETTINGS if not each.secret):
        assert f" {setting.flag} " in shown
        if setting.default != "" and not setting.is_switch:
            assert f"[{setting.shown(setting.default)}]" in shown
    assert "--parent-fd" not in shown
    assert " --no-admin do not run the admin server" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_status_0(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path / "log", "--workers=1") as (process, address):
        assert run("ping", node=address).returncode == 0
        process.send_signal(number)
        assert end(process) == exits.OK


def test_who_reloads_a_node_that_starts_does_not_end_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stderr, started_anew("serve", "--port=0", pipes={"stderr": stderr}) as process:
        eventually(lambda: blocked(process.pid) >> signal.SIGHUP - 1 & 1)
        process.send_signal(signal.SIGHUP)
        eventually(lambda: "event=reloaded" in log.read_text(), within=15.0)


def test_a_signal_that_is_not_for_a_worker_ends_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(log, "--workers=1") as (process, address):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        [worker] = [int(pid) for pid in children if "-0" in Path(f"/proc/{pid}/comm").read_text()]
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
            os.kill(worker, number)
        assert run("ping", node=address).returncode == 0
        assert "worker-draining" not in log.read_text()


def test_python_m_workers_is_the_same_command(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("prot = 1")
    for arguments in (["--config", str(tmp_path / "bad.toml")], ["--port", "x"], ["--frobnicate"]):
        ran = subprocess.run(
            [sys.executable, "-m", "workers", *arguments],
            capture_output=True,
            env=environment(),
            timeout=20 * time_factor(),
            check=False,
        )
        assert ran.returncode == exits.USAGE
        assert ran.stderr.replace(b"python -m workers", b"skywalker serve") == run("serve", *arguments).stderr


def test_an_option_outdoes_a_variable_and_a_variable_the_file(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text("port = 70000")
    assert b"node.toml: port: 70000" in run("serve", "--config", str(file)).stderr
    file.write_text("workers = 1\nopen = true\nbind = 'no such address'\n[limits]\nmax_calls = 7")
    outdone = run("serve", "--port=0", SKYWALKER_CONFIG=str(file), SKYWALKER_BIND="nor this one")
    assert outdone.returncode == exits.ADDRESS
    assert b"nor this one" in outdone.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "--port: 70000 is not a whole number from 0 to 65535"),
        (["--drain-timeout", "soon"], "--drain-timeout: 'soon' is not a number of seconds"),
        (["--output-bytes", "1 pint"], "--output-bytes: '1 pint' is not a whole number"),
        (["--bind", ""], "--bind: '' is not one line of text that is not empty"),
        (["--register", "--health-bind", "203.0.113.9"], "--health-bind: 203.0.113.9"),
        (["--config", "/no/such/file.toml"], "/no/such/file.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_setting_is_status_2_and_one_line(arguments: list[str], said: str) -> None:
    ran = run("serve", *arguments)
    assert ran.returncode == exits.USAGE
    assert ran.stderr.decode().startswith(f"skywalker: {said}")
    assert ran.stderr.count(b"\n") == 1


def test_what_is_wrong_with_a_certificate_is_told_before_anything_is_bound(node: Node, tmp_path: Path) -> None:
    (tmp_path / "node.pem").write_text("no certificate")
    ran = run("serve", "--port", str(node.port), "--tls-cert", str(tmp_path / "node.pem"))
    assert ran.returncode == exits.USAGE
    assert ran.stderr.decode().startswith(f"skywalker: {tmp_path}/node.pem holds no certificate with its key")


def test_a_port_in_use_is_one_line_and_a_status_of_its_own(node: Node) -> None:
    ran = run("serve", "--port", str(node.port))
    assert ran.returncode == exits.ADDRESS
    assert str(node.port) in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1
