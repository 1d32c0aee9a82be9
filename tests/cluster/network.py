"""Hosts of their own for nodes: network namespaces on one bridge, with lines that can be cut.

Each namespace is held by a process that dies with this one, and everything else lives inside of
them. So nothing is left of a network, however its test ends, and no two of them can clash.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Final, Protocol

import pytest

from tests.helpers import eventually

_CLONE_NEWNET: Final = 0x40000000
_PROGRAMS: Final = ("ip", "unshare", "nsenter", "setpriv")
_PATH: Final = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin"

_libc = ctypes.CDLL(None, use_errno=True)


class Machine(Protocol):
    """Where nodes and clients run."""

    @property
    def address(self) -> str:
        """The address that all others reach it at."""

    def inside(self) -> AbstractContextManager[None]:
        """For the length of a `with` block, what this thread opens or starts is on that machine."""


class Loopback:
    """This machine, for itself."""

    address = "127.0.0.1"

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        yield


class Namespace:
    """A network namespace, for the length of a `with` block; whatever was started inside must have ended before."""

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Namespace:
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"],
            stdin=subprocess.DEVNULL, start_new_session=True, env={"PATH": _PATH},
        )  # fmt: skip
        try:
            eventually(lambda: os.readlink(self._file) != os.readlink("/proc/self/ns/net"))
            self.run("ip link set lo up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._holder is not None
        self._holder.kill()
        self._holder.wait()

    @property
    def pid(self) -> int:
        """A process that lives there."""
        assert self._holder is not None
        return self._holder.pid

    @property
    def _file(self) -> str:
        return f"/proc/{self.pid}/ns/net"

    def run(self, command: str, *, check: bool = True, told: str = "") -> bool:
        """Run a command there and return whether it succeeded; with `check`, fail the test if it did not.

        It reads what it is `told`.
        """
        ran = subprocess.run(
            ["nsenter", f"--net={self._file}", *command.split()],
            check=False, input=told, capture_output=True, text=True, env={"PATH": _PATH},
        )  # fmt: skip
        assert not (check and ran.returncode), f"{command}: {ran.stderr or ran.stdout}"
        return not ran.returncode

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Have this thread, and whatever it opens or starts, be there for the length of a `with` block."""
        with open("/proc/thread-self/ns/net") as here, open(self._file) as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(here.fileno())


class Host(Namespace):
    """A machine on a network."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.address = f"10.77.0.{number}"
        self.mac = f"02:00:00:00:00:{number:02x}"

    def __repr__(self) -> str:
        return f"host {self.number}"


class Network:
    """Hosts that all see each other, until told otherwise; for a `with` block."""

    def __init__(self, count: int) -> None:
        self._switch = Namespace()
        self.hosts = [Host(number) for number in range(1, count + 1)]
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Network:
        with contextlib.ExitStack() as stack:
            switch = stack.enter_context(self._switch)
            # No spanning tree: a port forwards at once.
            switch.run("ip link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0")
            switch.run("ip link set hub up")
            for host in self.hosts:
                stack.enter_context(host)
                port = f"port{host.number}"
                switch.run(f"ip link add {port} type veth peer name eth0 netns {host.pid}")
                switch.run(f"ip link set {port} master hub up")
                host.run(f"ip link set eth0 address {host.mac}")
                host.run(f"ip address add {host.address}/24 dev eth0")
                host.run("ip link set eth0 up")
            self.heal()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # Which packets arrive.

    def cut(self, one: Iterable[Host], other: Iterable[Host]) -> None:
        """Lose in silence every packet from the one hosts to the others, and back."""
        ones, others = [*one], [*other]
        for hosts, beyond in ((ones, others), (others, ones)):
            for host in hosts:
                # To a card that nobody has: the bridge brings it to all, and none of them takes it.
                _send(host, dict.fromkeys(beyond, "02:00:00:00:ff:ff"))

    def isolate(self, *hosts: Host) -> None:
        """Cut these off from all the rest."""
        self.cut(hosts, [host for host in self.hosts if host not in hosts])

    def heal(self) -> None:
        """Have every host reach every other."""
        for host in self.hosts:
            _send(host, {other: other.mac for other in self.hosts if other is not host})


def _send(host: Host, to: Mapping[Host, str]) -> None:
    """Have a host send what is for others to these cards."""
    told = (f"neighbour replace {other.address} lladdr {mac} dev eth0 nud permanent" for other, mac in to.items())
    host.run("ip -batch -", told="\n".join(told))


def obstacle() -> str:
    """Return why there can be no network here; nothing if there can."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if missing:
        return f"partitions need {', '.join(missing)}, which this machine lacks"
    if os.geteuid():
        return "partitions need network namespaces, and those need root"
    try:
        with Namespace():
            return ""
    except AssertionError as error:
        return f"partitions need network namespaces, which are not allowed here: {error}"


def require() -> None:
    """Skip the test where there can be no network."""
    if why := obstacle():
        pytest.skip(why)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"cannot enter a network namespace: {os.strerror(error)}")
