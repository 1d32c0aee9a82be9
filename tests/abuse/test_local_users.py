"""What another user of the machine can do to a node, and to processes that are none, without being let in anywhere.

They may do at their own expense what they like: listen at a port that is free, call themselves a node, be drained.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.embedding import embedded
from tests.cli.running import SKYWALKER, run
from tests.cli.told_admin import documents
from tests.helpers import time_factor
from tests.workers.processes import is_gone, node
from tests.workers.setup.test_privileges import SERVE, reachable

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="who is not root cannot be several users")

FOE = pwd.getpwnam("nobody")
VICTIM = pwd.getpwnam("daemon")

BECOME = """
import ctypes, os, socket, sys
os.setgroups([])
os.setresgid({0}, {0}, {0})
os.setresuid({0}, {0}, {0})
"""
"""What the programs below begin with. Once they are that user, they may not be able to import anything."""

TAKE = """
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
door.listen()
ctypes.CDLL(None).prctl(15, sys.argv[2].encode())
print("listening", flush=True)
_, taken, _, _ = socket.recv_fds(door.accept()[0], 1, 1)
print("taken", flush=True)
sys.stdin.read()
"""

PASS = """
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
socket.send_fds(door, [b"x"], [listener.fileno()])
print("passed", flush=True)
"""


ANSWER = """
answer = sys.argv[1].encode()
door = socket.create_server(("127.0.0.1", int(sys.argv[2])))
print("answers", flush=True)
while True:
    with door.accept()[0] as asking:
        asking.recv(65536)
        head = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(answer)
        asking.sendall(head + answer)
"""


@contextlib.contextmanager
def running(user: pwd.struct_passwd, program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program as a user until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", BECOME.format(user.pw_uid) + program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    assert said, "the program has ended"
    return said


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def admin(port: int) -> str:
    """Where there is no admin server."""
    return "127.0.0.1:1"


def test_a_listener_that_was_passed_to_a_process_does_not_have_root_end_it(port: int, admin: str) -> None:
    """Even if it is a node's, of that very port: of a node that drains, say, or of another network namespace."""
    door = f"/tmp/skywalker-test-{os.getpid()}-{port}"
    try:
        with running(VICTIM, TAKE, door, f"skywalker:{port}") as victim:
            assert line(victim) == "listening"
            with running(FOE, PASS, door, str(port)) as foe:
                assert line(foe) == "passed"
                assert foe.wait(20 * time_factor()) == 0
            assert line(victim) == "taken"
            ran = run("drain", "--port", str(port), "--admin", admin)
            assert victim.poll() is None
            assert ran.returncode == 4
            assert f"process {victim.pid} of user daemon, does" in ran.stderr.decode()
    finally:
        Path(door).unlink(missing_ok=True)


def test_an_admin_server_of_somebody_elses_does_not_keep_root_from_ending_a_node(port: int) -> None:
    """It says that the node drains already, and so should not be told."""
    state = documents("127.0.0.1:1")["/api/state"]
    with embedded() as found:
        state["node"] |= {"pid": found.pid, "draining": True}
        with running(FOE, ANSWER, json.dumps(state), str(port)) as foe:
            assert line(foe) == "answers"
            ran = run("drain", "--port", str(found.port), "--admin", f"127.0.0.1:{port}")
        assert ran.returncode == 0
        assert found.stop() == 0
        assert "SIGTERM" in found.log


def test_root_drains_a_node_that_is_another_users(admin: str) -> None:
    """Be it that root has started it, or that user."""
    becoming = ["setpriv", f"--reuid={FOE.pw_uid}", f"--regid={FOE.pw_gid}", "--clear-groups"]
    for command in ([], becoming):
        with node(command=[*reachable(), *command, *SERVE], settings=["--workers=1", "--user=nobody"]) as found:
            assert run("drain", "--port", str(found.port), "--admin", admin).returncode == 0
            assert is_gone(found.pid)


def test_who_is_not_root_is_told_whose_a_node_is_and_does_not_end_it(admin: str) -> None:
    with embedded() as found:
        ran = subprocess.run(
            [
                *reachable(), "setpriv", f"--reuid={FOE.pw_uid}", f"--regid={FOE.pw_gid}", "--clear-groups",
                SKYWALKER, "drain", "--port", str(found.port), "--admin", admin,
            ],
            capture_output=True, text=True, check=False, timeout=20 * time_factor(),
        )  # fmt: skip
        assert ran.returncode == 1
        assert f"what listens on port {found.port} is of user root: if it is a node" in ran.stderr
        with found.connect() as client:
            client.ping()
