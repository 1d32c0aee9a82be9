"""What checks ask of the system they run on, and of its users; tests put files of their own in the place of its."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import pwd
import re
import socket
from pathlib import Path
from typing import Final

from skywalker import memory, processes
from skywalker.address import Address
from skywalker.cli import local_nodes
from skywalker.config import Config, is_loopback
from skywalker.errors import ConfigError
from skywalker.listeners import in_the_way

STA_UNSYNC: Final = 0x40
FILES: Final = "Max open files"
ADDRESS_SPACE: Final = "Max address space"
DATA: Final = "Max data size"
"""Limits of a process, as the kernel calls them."""

_MEMORY: Final = re.compile(r"^MemTotal: +(\d+) kB", re.MULTILINE)


class _Timex(ctypes.Structure):
    """The beginning of struct timex, with room for the rest of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("times", ctypes.c_long * 4),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


@dataclasses.dataclass(frozen=True)
class Machine:
    """One machine. `proc` is its /proc, `cgroups` where its control groups are."""

    proc: Path = processes.PROC
    cgroups: Path = memory.CGROUPS
    cores: int = dataclasses.field(default_factory=lambda: os.cpu_count() or 1)
    kernel: str = dataclasses.field(default_factory=lambda: os.uname().release)

    def number(self, path: str) -> int | None:
        """Return the number that a file such as "sys/net/core/somaxconn" holds; None if there is none."""
        try:
            return int((self.proc / path).read_text())
        except (OSError, ValueError):
            return None

    def memory(self) -> int | None:
        """Return the bytes of memory; None if that is not told."""
        try:
            match = _MEMORY.search((self.proc / "meminfo").read_text())
        except OSError:
            return None
        return int(match[1]) * 1024 if match else None

    def limit(self, kind: str, pid: int | None) -> tuple[float, float] | None:
        """Return the soft and the hard limit of a process, or this one; None if that is not told."""
        try:
            told = (self.proc / (str(pid) if pid else "self") / "limits").read_text()
        except OSError:
            return None
        match = re.search(rf"^{kind} +(\S+) +(\S+)", told, re.MULTILINE)
        if match is None:
            return None
        soft, hard = (float("inf") if text == "unlimited" else int(text) for text in match.groups())
        return soft, hard

    def node(self, config: Config) -> int | None:
        """Return the process of the node that runs here with that address; None if none does, or we may not see it."""
        nodes = local_nodes.nodes(self.proc)
        there = in_the_way(config.bind, config.port, self.proc)
        return next((pid for each in there if (pid := nodes.get(Address(each.host, each.port)))), None)

    def is_bound(self, host: str, port: int) -> bool:
        """Whether an address is in use by a program that need not listen there: such are in no table."""
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
        return False

    def clock_is_synchronised(self) -> bool | None:
        """Return what the kernel says of its clock; None if it may not be asked."""
        timex = _Timex()
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
            return None
        return not timex.status & STA_UNSYNC


def workers(config: Config, machine: Machine) -> int:
    """Return how many workers a node has."""
    return config.workers or machine.cores


READ: Final = 4
WRITE: Final = 2
ENTER: Final = 1

NOBODY: Final = "nobody"


def becomes(config: Config, hosts: set[str]) -> pwd.struct_passwd | None:
    """Return whom `serve` would become if this user ran it; None if it would stay who it is.

    The `hosts` are where it listens. Raises ConfigError if it could not start as that user.
    """
    if os.geteuid() or config.user == "root":
        return None
    if config.user:
        return _named(config.user)
    if not all(map(is_loopback, hosts)):
        raise ConfigError("root must say by user whom serve is to become")
    try:
        nobody = _named(NOBODY)
    except ConfigError:
        return None
    # It stays root where nobody could not run it.
    needed = (Path(__file__), Path(os.__file__))
    return nobody if all(may(nobody, each, READ) for each in needed) else None


def may(user: pwd.struct_passwd | None, path: Path, mode: int) -> bool:
    """Whether a user, or this one, may READ, WRITE or ENTER what is at a path, as far as its mode bits say."""
    if user is None:
        return os.access(path, mode, effective_ids=True)
    path = path.resolve()
    return _has(user, path, mode) and all(_has(user, each, ENTER) for each in path.parents)


def _has(user: pwd.struct_passwd, path: Path, mode: int) -> bool:
    found = path.stat()
    if found.st_uid == user.pw_uid:
        return found.st_mode >> 6 & mode == mode
    if found.st_gid in os.getgrouplist(user.pw_name, user.pw_gid):
        return found.st_mode >> 3 & mode == mode
    return found.st_mode & mode == mode


def _named(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"there is no user {name!r} on this machine") from None
