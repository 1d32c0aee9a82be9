"""A real systemd, as process 1 of namespaces of its own: files in /etc, /run and /var/lib are private to it.

It shares the network with the tests, so that they reach what it runs. It knows no unit but those that a test writes,
and nothing of the machine's. Needs root, and a control group of its own.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import skywalker
from skywalker.cli.systemd.plan import closed_directories
from tests.helpers import eventually, time_factor, written_to

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.path.exists(path)), "")
UNITS = "/etc/systemd/system"
CHECKOUT = Path(skywalker.__file__).parent.parent
NEEDED = sorted({Path(sys.prefix), Path(sys.base_prefix), CHECKOUT})

# What units want that are installed: without anything that these want in turn.
STUBS = ("sysinit", "basic", "shutdown", "sockets", "multi-user", "network", "network-online", "test")


class Machine:
    """One that has booted. Made by booted()."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def path(self, path: str) -> Path:
        """Return a path of the machine as it is to be reached from outside."""
        return Path(f"/proc/{self.pid}/root{path}")

    def run(self, *command: str, status: int | None = 0) -> str:
        """Run a command in the machine as root and return what it wrote; its status is checked unless it is None."""
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SKYWALKER_")}
        ran = subprocess.run(
            [*enter, *command], capture_output=True, text=True, env=environment, timeout=60 * time_factor(), check=False
        )
        if status is not None and ran.returncode != status:
            raise AssertionError(f"{shlex.join(command)}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout + ran.stderr

    def property(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def add(self, unit: str, text: str) -> None:
        """Add a drop-in to a unit."""
        directory = self.path(f"{UNITS}/{unit}.d")
        directory.mkdir(exist_ok=True)
        (directory / f"{len(list(directory.iterdir()))}.conf").write_text(text)
        self.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def booted() -> Iterator[Machine]:
    """Boot one; it is gone with the block, with all that it runs."""
    if os.geteuid() != 0:
        pytest.skip("a systemd of its own needs root")
    if not SYSTEMD:
        pytest.skip("there is no systemd: make tools")
    with _control_group() as group, tempfile.TemporaryFile() as log:
        boot = f"echo $$ > {group}/cgroup.procs && exec unshare --kill-child --fork --pid --mount --mount-proc --cgroup"
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "sh", "-c", f'{boot} --uts --ipc sh -euc "$1"', "sh", _first_steps()],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            yield Machine(_booted(process))
        except AssertionError as error:
            error.add_note(f"systemd said:\n{written_to(log)}")
            raise
        finally:
            process.kill()
            process.wait()


def _booted(process: subprocess.Popen[bytes]) -> int:
    def pid() -> int:
        assert process.poll() is None, "the machine has ended"
        first = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        ran = subprocess.run(
            ["nsenter", f"--target={first}", "--mount", "--pid", "--cgroup", "systemctl", "is-active", "test.target"],
            capture_output=True,
            check=False,
        )
        return first if ran.returncode == 0 else 0

    return eventually(pid, within=20.0)


@contextlib.contextmanager
def _control_group() -> Iterator[Path]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(at) for _, at, kind, *_ in mounts if kind == "cgroup2"), None)
    if root is None:
        pytest.skip("a systemd of its own needs a hierarchy of control groups, version 2")
    group = root / f"skywalker-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        (group / "cgroup.kill").write_text("1")
        for directory in (*sorted(group.rglob("*/"), reverse=True), group):
            eventually(lambda directory=directory: _removed(directory))  # type: ignore[misc]


def _removed(directory: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        directory.rmdir()
    return True


def _first_steps() -> str:
    """Return what is done before systemd is executed: what it may write is made private, nothing else is hidden."""
    steps = [
        "mount -t tmpfs -o mode=755 tmpfs /run",
        "cp -a /etc /run/etc",
        "rm -rf /run/etc/systemd && mkdir -p /run/etc/systemd/system /run/generators /run/kept",
        "mount --bind /run/etc /etc",
        # It would raise limits of the kernel, which are everybody's.
        "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys",
        # One that is mounted already is not its own.
        "umount -l /sys/fs/cgroup || true",
        "mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    ]
    for number, directory in enumerate(_to_replace()):
        kept = f"/run/kept/{number}"
        steps.append(f"mkdir {kept} && mount --bind {directory} {kept} && mount -t tmpfs -o mode=755 tmpfs {directory}")
        for path in (each for each in NEEDED if each.is_relative_to(directory)):
            at = shlex.quote(str(path))
            steps.append(f"mkdir -p {at} && mount --bind {kept}/{shlex.quote(str(path.relative_to(directory)))} {at}")
    for stub in STUBS:
        steps.append(f"printf '[Unit]\\nDefaultDependencies=no\\n' > {UNITS}/{stub}.target")
    steps.append(f"export container=other SYSTEMD_UNIT_PATH={UNITS} SYSTEMD_GENERATOR_PATH=/run/generators")
    steps.append(f"exec {SYSTEMD} --system --unit=test.target --log-target=console --show-status=no")
    return "\n".join(steps)


def _to_replace() -> list[Path]:
    """Return the directories that are hidden, but for what is needed of them: a service could not get through some."""
    found: list[Path] = []
    for directory in sorted((Path("/var/lib"), *closed_directories())):
        if not any(directory.is_relative_to(each) for each in found):
            found.append(directory)
    return found
