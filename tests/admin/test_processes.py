"""The agent and its port: started, killed, replaced, without what it needs, and beside another node."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

import skywalker
from skywalker.address import Address
from tests.admin.asking import Asker, agent_of, node
from tests.helpers import eventually


def test_an_agent_that_is_killed_comes_back_at_the_same_port_tells_what_was_counted_and_asks_new_workers() -> None:
    with node(workers=2) as (found, asker), found.connect() as client:
        client.send("nobody", 1, timeout=0, default=None)
        eventually(lambda: asker.metric("skywalker_calls_total") == 1)
        first = agent_of(found)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: agent_of(found) != first)
        assert asker.ask("/health")[0] == 200  # whoever came meanwhile has waited
        assert asker.metric("skywalker_calls_total") == 1
        assert asker.json("/api/state")["restarts"]["agent"] == 1
        eventually(lambda: asker.json("/api/topics")["silent"] == [])
        victim = found.worker_pids()[0]
        os.kill(victim, signal.SIGKILL)
        state = asker.once("/api/state", lambda it: it["restarts"]["signal"] == 1 and len(it["workers"]) == 2)
        assert victim not in [worker["pid"] for worker in state["workers"]]
        eventually(lambda: asker.json("/api/topics")["silent"] == [])
        assert sorted(worker["pid"] for worker in asker.json("/api/state")["workers"]) == found.worker_pids()


def test_a_second_node_says_once_that_it_waits_for_the_port_and_takes_it_when_it_is_free() -> None:
    with node() as (owner, first):
        second = skywalker.embedding.start(admin=True, admin_port=first.address.port)
        try:
            eventually(lambda: "cannot-serve-admin" in second.log)
            assert second.admin_address == ""
            with second.connect() as client:
                client.send("nobody", 1, timeout=0, default=None)
        except BaseException:
            second.stop()
            raise
    try:
        asker = Asker(str(first.address))
        pid = eventually(lambda: asker.json("/api/state")["node"]["pid"], within=10)
        assert pid == second.pid
        assert second.log.count("cannot-serve-admin") == 1
        assert f"Address already in use by skywalker:{owner.port}, process {owner.pid} of" in second.log
        assert second.log.count("serving-admin") == 1
    finally:
        second.stop()


def test_an_address_that_is_not_this_machines_keeps_no_node_from_starting() -> None:
    with (
        skywalker.embedded(admin=True, admin_bind="no.such.host.invalid", open=True) as found,
        found.connect() as client,
    ):
        client.send("nobody", 1, timeout=0, default=None)
        eventually(lambda: "cannot-serve-admin" in found.log, within=15)


def test_a_node_without_it_opens_no_port_and_has_no_agent() -> None:
    with skywalker.embedded() as found:
        assert found.admin_address == ""
        assert {child.pid for child in psutil.Process(found.pid).children()} == {*found.worker_pids()}


def test_it_listens_on_an_ipv6_address_too() -> None:
    with node(admin_bind="::1") as (found, asker):
        assert Address.parse(found.admin_address).host == "::1"
        assert asker.json("/api/state")["node"]["doors"]["admin"] == found.admin_address
        with socket.create_connection(("::1", asker.address.port), 5) as sock:
            sock.sendall(b"GET /ready HTTP/1.0\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 200")


FAULT = """
import os, psutil
as_ever = psutil.Process.oneshot
def oneshot(self):
    if os.path.exists({trigger!r}):
        raise ValueError("a mistake of ours")
    return as_ever(self)
psutil.Process.oneshot = oneshot
"""


def test_an_agent_that_cannot_take_samples_any_more_ends_and_another_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = tmp_path / "trigger"
    (tmp_path / "sitecustomize.py").write_text(FAULT.format(trigger=str(trigger)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with node() as (found, asker), found.connect() as client:
        first = agent_of(found)
        trigger.touch()
        eventually(lambda: "event=agent-ended" in found.log, within=10)
        trigger.unlink()
        eventually(lambda: agent_of(found) != first and asker.json("/api/history")["calls"], within=15)
        before = asker.json("/api/state")["time"]
        asker.once("/api/state", lambda state: state["time"] > before)
        ended = next(line for line in found.log.splitlines() if "event=agent-ended" in line)
        assert f'pid={first} how="status 1"' in ended
        assert "event=bug" in found.log
        assert "a mistake of ours" in found.log
        client.send("nobody", 1, timeout=0, default=None)
