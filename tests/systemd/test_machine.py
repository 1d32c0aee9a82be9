"""The units under a real systemd: installed as an operator does, started, reloaded, killed, and started anew."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import skywalker
import skywalker.pubsub
from tests.cli.running import SKYWALKER
from tests.helpers import eventually
from tests.systemd.machine import NEEDED, Machine, booted
from tests.workers.processes import connect, is_gone

SERVICE = "skywalker.service"
SOCKETS = ("skywalker.socket", "skywalker-pubsub.socket")
CONFIG = "/etc/skywalker/skywalker.toml"
LOG = "/run/skywalker.log"
PORT = 23443
PUBSUB_PORT = 23626
ADMIN_PORT = 23480
SILK_PORT = 23444

SETTINGS = f"""
port = {PORT}
workers = 2
admin_port = {ADMIN_PORT}
drain_timeout_s = 1
pubsub_port = {PUBSUB_PORT}
[cluster]
silk = "127.0.0.1:{SILK_PORT}"
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with booted() as machine:
        machine.run(SKYWALKER, "systemd", "install")
        machine.path(CONFIG).write_text(SETTINGS)
        machine.run(SKYWALKER, "systemd", "install", "--force")
        machine.run("systemd-sysusers")
        machine.run("systemd-tmpfiles", "--create", "skywalker.conf")
        machine.run("systemctl", "daemon-reload")
        # What is below /tmp a service does not see, and these tests may be.
        seen = "".join(f"BindReadOnlyPaths={path}\n" for path in NEEDED if str(path).startswith(("/tmp/", "/var/tmp/")))
        for unit in (SERVICE, "skywalker@.service"):
            machine.add(unit, f"[Service]\nStandardError=append:{LOG}\n{seen}")
        yield machine


@pytest.fixture
def serving(machine: Machine) -> Machine:
    """With a node that serves, whatever the test before did to it."""
    try:
        machine.run("systemctl", "start", SERVICE)
    except AssertionError as error:
        error.add_note(machine.path(LOG).read_text())
        raise
    return machine


def main_pid(machine: Machine) -> int:
    """Return the pid, as it is outside, of the process that the service is."""
    inner = machine.property(SERVICE, "MainPID")
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            status = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pids = re.search(r"NSpid:\s(.*)", status)
        if pids and pids[1].split()[1:] == [inner]:
            return int(path.parent.name)
    raise AssertionError(f"there is no process {inner} in the machine")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ping() -> bool:
    with skywalker.connect(f"127.0.0.1:{PORT}") as junction:
        junction.ping()
    return True


def test_a_service_has_started_once_it_serves_and_says_how_it_does(serving: Machine) -> None:
    assert ping()
    assert serving.property(SERVICE, "ActiveState") == "active"
    eventually(lambda: "serving: 2 workers, " in serving.property(SERVICE, "StatusText").lower(), within=10.0)


def test_its_processes_have_no_rights_but_do_all_that_a_node_does(serving: Machine) -> None:
    main = main_pid(serving)
    for pid in (main, *children(main)):
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {0}
        assert "0" not in status["Uid"].split()
    log = serving.path(LOG).read_text()
    assert re.search(r"event=serving .*steering=True", log), "no program could be attached to its listeners"
    assert "level=error" not in log
    # Its agent has loaded ZeroMQ, psutil and a server of HTTP, and reads figures in memory that it shares.
    url = f"http://127.0.0.1:{ADMIN_PORT}/api/state"
    state = eventually(lambda: json.load(urllib.request.urlopen(url, timeout=5)), within=10.0)
    assert state["ring"]["nodes"] == 1
    assert serving.path("/var/lib/skywalker").stat().st_mode & 0o777 == 0o750
    assert list(serving.path("/var/lib/skywalker").iterdir())


def test_a_reload_replaces_the_workers_and_not_the_service(serving: Machine) -> None:
    main = main_pid(serving)
    before = children(main)
    with skywalker.connect(f"127.0.0.1:{PORT}") as junction:
        junction.ping()
        serving.run("systemctl", "reload", SERVICE)
        assert junction.ping() is not None
    assert main_pid(serving) == main
    eventually(lambda: not set(before[:2]) & set(children(main)))
    # The manager may end the job before the node has said that it reloads: then it is told that it does, later.
    eventually(lambda: serving.property(SERVICE, "ActiveState") == "active", within=10.0)
    assert ping()


def test_a_killed_service_is_gone_with_all_its_processes_and_comes_back(serving: Machine) -> None:
    main = main_pid(serving)
    processes = [main, *children(main)]
    os.kill(main, signal.SIGKILL)
    eventually(lambda: all(map(is_gone, processes)), within=3.0)
    eventually(lambda: serving.property(SERVICE, "ActiveState") == "active" and ping(), within=10.0)
    assert main_pid(serving) != main


def test_a_service_that_hangs_is_ended_and_comes_back(serving: Machine) -> None:
    serving.add(SERVICE, "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=500ms\n")
    serving.run("systemctl", "restart", SERVICE)
    main = main_pid(serving)
    os.kill(main, signal.SIGSTOP)
    eventually(lambda: is_gone(main), within=10.0)
    eventually(lambda: serving.property(SERVICE, "ActiveState") == "active" and ping(), within=10.0)


def test_a_wrong_setting_keeps_a_service_from_starting_and_is_not_tried_again(serving: Machine) -> None:
    serving.path(CONFIG).write_text(SETTINGS.replace("port", "prot", 1))
    try:
        serving.run("systemctl", "restart", SERVICE, status=1)
        assert serving.property(SERVICE, "ActiveState") == "failed"
        assert serving.property(SERVICE, "ExecMainStatus") == "2"
        assert serving.property(SERVICE, "NRestarts") == "0"
        assert "did you mean 'port'" in serving.path(LOG).read_text()
    finally:
        serving.path(CONFIG).write_text(SETTINGS)
    serving.run("systemctl", "start", SERVICE)
    assert ping()


def drain(machine: Machine, port: int, status: int = 0) -> str:
    """Have root of the machine drain a node; its admin server, if it has one, is the one of SETTINGS."""
    return machine.run(SKYWALKER, "drain", f"--port={port}", f"--admin=127.0.0.1:{ADMIN_PORT}", status=status)


def test_root_drains_a_service_which_stays_down(serving: Machine) -> None:
    """It is another user's, and what is told of it is told across the walls of its unit."""
    assert serving.path(f"/proc/{serving.property(SERVICE, 'MainPID')}/comm").read_text() == f"skywalker:{PORT}\n"
    assert drain(serving, PORT) == f"127.0.0.1:{PORT} has ended\n"
    eventually(lambda: serving.property(SERVICE, "ActiveState") == "inactive", within=10.0)
    assert serving.property(SERVICE, "Result") == "success"
    assert "no node of this machine listens on" in drain(serving, PORT, status=4)


def test_of_two_nodes_of_a_machine_each_is_drained_alone_and_neither_takes_the_others_port(machine: Machine) -> None:
    one, other = (f"skywalker@{name}.service" for name in ("one", "other"))
    alone = "admin = false\nworkers = 1\ndrain_timeout_s = 1\n"
    for name, port in (("one", PORT + 1), ("other", PORT + 2)):
        machine.path(f"/etc/skywalker/{name}.toml").write_text(f"port = {port}\n{alone}")
    machine.run("systemd-tmpfiles", "--create", "skywalker.conf")
    try:
        machine.run("systemctl", "start", one, other)
        drain(machine, PORT + 1)
        eventually(lambda: machine.property(one, "ActiveState") == "inactive", within=10.0)
        assert machine.property(other, "ActiveState") == "active"
        machine.path("/etc/skywalker/one.toml").write_text(f"port = {PORT + 2}\n{alone}")
        machine.run("systemctl", "start", "--no-block", one)
        said = f"cannot listen on 127.0.0.1:{PORT + 2}: Address already in use by a process of user skywalker"
        eventually(lambda: said in machine.path(LOG).read_text(), within=10.0)
        machine.run("systemctl", "stop", one)
        machine.run("systemctl", "reload", other)
        eventually(lambda: machine.property(other, "ActiveState") == "active", within=10.0)
        with skywalker.connect(f"127.0.0.1:{PORT + 2}") as junction:
            junction.ping()
    finally:
        machine.run("systemctl", "stop", one, other)


@pytest.fixture
def activated(machine: Machine) -> Iterator[Machine]:
    """With listeners that systemd holds, and no node yet."""
    machine.run("systemctl", "stop", SERVICE)
    machine.run("systemctl", "start", *SOCKETS)
    yield machine
    machine.run("systemctl", "stop", *SOCKETS, SERVICE)


def test_a_node_is_started_by_who_wants_in_at_a_door_and_gets_a_listener_for_each_worker(activated: Machine) -> None:
    assert activated.property(SERVICE, "ActiveState") == "inactive"
    assert ping()
    for _ in range(20):
        with connect(PORT) as client:
            # The source port says which worker gets a connection, as it does where the node opens its listeners.
            assert client.worker() == (client.socket.getsockname()[1] >> 1) % 2
    assert activated.property(SERVICE, "ActiveState") == "active"
    with skywalker.pubsub.connect(f":{PUBSUB_PORT}") as broker:
        broker.publish("sys.alert", "It is up.")


def test_a_drained_service_is_started_again_by_who_wants_in(activated: Machine) -> None:
    """systemd has its listeners, too, and is not what is drained."""
    assert ping()
    main = activated.property(SERVICE, "MainPID")
    assert drain(activated, PORT) == f"127.0.0.1:{PORT} has ended\n"
    eventually(lambda: activated.property(SERVICE, "ActiveState") == "inactive", within=10.0)
    assert f"no node of this machine listens on port {PORT}: systemd, process " in drain(activated, PORT, status=4)
    assert ping()
    assert activated.property(SERVICE, "MainPID") not in ("0", main)


def test_a_restart_refuses_nobody_and_resets_nobody(activated: Machine) -> None:
    """One new connection after the other, at both doors' ports, while the service is restarted twice."""
    done = threading.Event()
    came: list[int] = []
    failed: list[BaseException] = []

    def keep_coming() -> None:
        while not done.wait(0.002):
            try:
                with connect(PORT) as client:
                    came.append(client.worker())
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=keep_coming) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        mains = set()
        for _ in range(2):
            activated.run("systemctl", "restart", SERVICE)
            mains.add(activated.property(SERVICE, "MainPID"))
            so_far = len(came)
            eventually(lambda so_far=so_far: len(came) > so_far + 50, within=10.0)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(mains) == 2
    assert not failed, f"{len(failed)} of {len(failed) + len(came)}, as {failed[0]!r}"
