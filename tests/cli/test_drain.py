"""`skywalker drain` against real nodes."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.drain import drain
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node, embedded
from skywalker.listeners import listeners_at
from tests.cli.running import end, run, started
from tests.cli.terminal import on_terminal
from tests.cli.told_admin import documents, told_admin
from tests.helpers import eventually


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@contextmanager
def node_at(port: int, tmp_path: Path, **settings: object) -> Iterator[Node]:
    with embedded(port=port, state_dir=str(tmp_path / "state"), **settings) as node:
        yield node


def has_found_it(pid: int) -> bool:
    """Whether a `drain` has the process in hand that it is to end, or waits for."""
    return any(os.readlink(each) == "anon_inode:[pidfd]" for each in Path(f"/proc/{pid}/fd").iterdir())


def no_admin() -> str:
    return f"127.0.0.1:{free_port()}"


def test_a_node_is_drained_and_waited_for(tmp_path: Path) -> None:
    port = free_port()
    with node_at(port, tmp_path, workers=2) as node:
        ran = run("drain", "--port", str(port), "--admin", no_admin())
        assert (ran.returncode, ran.stdout.decode()) == (0, f"127.0.0.1:{port} has ended\n")
        assert ran.stderr == b""
        assert node.stop() == 0, "systemd would start a node again that ends otherwise"
        assert "SIGTERM" in node.log


@contextmanager
def node_that_drains_for_long(port: int, tmp_path: Path, **settings: object) -> Iterator[tuple[Node, Client]]:
    """Run one on which somebody waits."""
    with node_at(port, tmp_path, drain_timeout_s=60.0, **settings) as node, node.connect() as client:
        client.begin("recv", "jobs", timeout=60)
        eventually(lambda: client.topic("jobs")["receivers"] == 1)
        yield node, client


def test_the_admin_server_is_looked_for_where_the_node_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Api(AdminApi):
        def __init__(self, address: AdminAddress, *others: Any) -> None:
            asked.append(str(address))
            super().__init__(address, *others)

    monkeypatch.setattr("skywalker.cli.drain.AdminApi", Api)
    port = free_port()
    for flags, where in ([], "127.0.0.2:3480"), (["--admin", no_admin()], "127.0.0.1:"):
        with node_at(port, tmp_path, bind="127.0.0.2"):
            assert CliRunner().invoke(drain, ["--port", str(port), *flags]).exit_code == 0
        assert asked.pop().startswith(where)


def test_where_no_node_is_the_status_is_4_and_those_that_are_here_are_named(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    ran = run("drain", "--port", str(port))
    assert ran.returncode == 4
    assert f"no node of this machine listens on port {port}" in ran.stderr.decode()
    with node_at(other, tmp_path) as node:
        ran = run("drain", "--port", str(port))
        assert ran.returncode == 4
        assert f"127.0.0.1:{other}" in ran.stderr.decode()
        ran = run("drain", "--port", str(other), "--bind", "127.0.0.9")
        assert ran.returncode == 4
        assert "127.0.0.9" in ran.stderr.decode()
        with node.connect() as client:
            client.ping()


def test_of_several_nodes_on_one_port_one_must_be_chosen(tmp_path: Path) -> None:
    port = free_port()
    with (
        embedded(bind="127.0.0.1", port=port, state_dir=str(tmp_path / "1")) as first,
        embedded(bind="127.0.0.2", port=port, state_dir=str(tmp_path / "2")) as second,
    ):
        ran = run("drain", "--port", str(port))
        assert ran.returncode == 2
        said = ran.stderr.decode()
        for node, host in ((first, "127.0.0.1"), (second, "127.0.0.2")):
            assert f"--bind {host} for skywalker:{port}, process {node.pid} of user " in said
        ran = run("drain", "--bind", "127.0.0.2", SKYWALKER_PORT=str(port), SKYWALKER_ADMIN_PORT="1")
        assert ran.returncode == 0
        assert second.stop() == 0
        with first.connect() as client:
            client.ping()


def test_on_a_terminal_it_shows_for_whom_it_waits_and_ctrl_c_leaves_the_node_draining(tmp_path: Path) -> None:
    port = free_port()
    with told_admin() as admin, node_that_drains_for_long(port, tmp_path) as (node, _):
        state = documents("127.0.0.1:1")["/api/state"]
        state["node"]["pid"] = node.pid
        admin.says["/api/state"] = state
        arguments = ["drain", "--port", str(port), "--admin", admin.address]
        shown = f"draining 127.0.0.1:{port}, process {node.pid}, for 1 s, waiting there: 3 send".encode()
        with on_terminal(*arguments, columns=120) as (screen, process):
            screen.shows(shown)
            screen.press(b"\x03")
            assert b"Traceback" not in screen.read_to_the_end()
            assert end(process) == 130
        assert (Path("/proc") / str(node.pid)).exists()
        with on_terminal(*arguments, columns=120) as (screen, process):
            screen.shows(shown)
            os.kill(node.pid, signal.SIGTERM)  # a second one ends it
            assert f"127.0.0.1:{port} has ended".encode() in screen.read_to_the_end()
            assert end(process) == 0


def test_a_node_that_does_not_listen_any_more_is_waited_for_and_not_told_again(tmp_path: Path) -> None:
    """It drains, which no admin server tells here."""
    port = free_port()
    with node_that_drains_for_long(port, tmp_path) as (node, client):
        arguments = ["drain", "--port", str(port), "--admin", no_admin()]
        assert run(*arguments, "--no-wait").returncode == 0
        eventually(lambda: not listeners_at("127.0.0.1", port))
        with started(*arguments) as waiting:
            eventually(lambda: has_found_it(waiting.pid))
            assert run(*arguments, "--no-wait").returncode == 0
            assert waiting.poll() is None
            client.close()
            assert end(waiting) == 0
        assert node.stop() == 0


def test_the_admin_server_of_a_real_node_says_who_waits_and_that_it_drains(tmp_path: Path) -> None:
    port = free_port()
    with node_that_drains_for_long(port, tmp_path, admin=True) as (node, client):
        arguments = ["drain", "--port", str(port), "--admin", node.admin_address]
        with on_terminal(*arguments, columns=160) as (screen, process):
            screen.shows(b"waiting there: 0 send, 1 recv")
            # It drains already: it is waited for by two, and not ended by the second.
            with started(*arguments) as another:
                eventually(lambda: has_found_it(another.pid))
                client.close()
                assert end(process) == end(another) == 0
                screen.read_to_the_end()
        assert node.stop() == 0
