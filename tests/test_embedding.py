"""A node as a child process: it starts, tells where it is, and ends with its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from skywalker.embedding import StartError, embedded, start
from skywalker.errors import ConfigError
from tests.helpers import eventually, time_factor


def gone(*pids: int) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)


def test_a_node_serves_inside_the_block_and_is_gone_after_it() -> None:
    with embedded(workers=2) as node:
        pids = [node.pid, *node.worker_pids()]
        assert len(pids) == 3
        assert node.address == f"127.0.0.1:{node.port}"
        with node.connect() as junction:
            waiting = junction.begin("recv", "jobs")
            assert junction.send("jobs", 1)
            assert waiting.result() == 1
        assert "event=serving" in node.log
    assert gone(*pids)
    assert "event=ended" in node.log
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((node.host, node.port))


def test_settings_reach_the_node_and_the_environment_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYWALKER_NAME", "from-the-environment")
    monkeypatch.setenv("SKYWALKER_PORT", "no port")
    monkeypatch.setenv("SKYWALKER_CONFIG", "/no/such/file")
    with embedded(bind="127.0.0.2", name="ours", max_calls=5) as node, node.connect() as junction:
        assert node.host == "127.0.0.2"
        assert junction.hello()["name"] == "ours"
    with embedded() as node, node.connect() as junction:
        assert junction.hello()["name"] == socket.gethostname()


def test_a_wrong_setting_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="did you mean 'workers'"), embedded(worker=2):
        pass
    with pytest.raises(ConfigError, match="port: 70000 is not"):
        start(port=70_000)


def test_a_node_that_cannot_start_says_why_in_its_own_words() -> None:
    with embedded() as node:
        with pytest.raises(StartError) as raised:
            start(port=node.port)
        assert raised.value.status == 6
        assert str(node.port) in raised.value.log
        assert raised.value.log.strip() in str(raised.value)


def test_a_worker_that_was_replaced_is_found() -> None:
    with embedded(workers=2) as node:
        first = node.worker_pids()
        os.kill(first[0], signal.SIGKILL)
        second = eventually(lambda: (now := node.worker_pids()) != first and len(now) == 2 and now)
        assert first[1] in second


def test_stop_does_not_wait_for_a_node_that_died() -> None:
    node = start(workers=2)
    pids = node.worker_pids()
    os.kill(node.pid, signal.SIGKILL)
    assert node.stop() == -signal.SIGKILL
    eventually(lambda: gone(*pids))


def test_a_node_that_does_not_listen_to_reason_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skywalker.embedding.GRACE_S", 0.1)
    node = start()
    pids = [node.pid, *node.worker_pids()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    assert node.stop() == -signal.SIGKILL
    eventually(lambda: gone(*pids))


def test_an_exception_in_the_block_stops_the_node_and_goes_on() -> None:
    with pytest.raises(ZeroDivisionError), embedded() as node:
        raise ZeroDivisionError
    assert gone(node.pid)


@pytest.mark.parametrize("how", ["os._exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(3)"])
def test_a_node_never_outlives_its_program(how: str) -> None:
    program = f"""
import os, signal, sys
from skywalker.embedding import start
node = start(workers=2)
print(node.pid, *node.worker_pids(), flush=True)
{how}
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30 * time_factor(), check=False)
    pids = [int(pid) for pid in ran.stdout.split()]
    assert len(pids) == 3, ran.stderr
    eventually(lambda: gone(*pids), within=10.0)


def test_a_package_named_workers_in_the_current_directory_is_not_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "__main__.py").write_text("raise SystemExit('not the server')")
    monkeypatch.chdir(tmp_path)
    with embedded() as node:
        assert node.worker_pids()
