"""What /proc tells of the processes of this machine: their names, their users, and which sockets they have."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")

_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
_USERS: Final = re.compile(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$", re.MULTILINE)
_NODE: Final = re.compile(r"skywalker:(\d{1,5})", re.ASCII)


def node_name(port: int) -> str:
    """Return what the first process of a node calls itself: no other user can have it do so, unless it is set-uid."""
    return f"skywalker:{port}"


def node_port(pid: int, proc: Path = PROC) -> int | None:
    """Return the port of the node whose first process this is, as it says itself; None if it is no such process."""
    called = _NODE.fullmatch(name(pid, proc))
    return int(called[1]) if called else None


def pids(proc: Path = PROC) -> Iterator[int]:
    """Yield the processes that may be seen."""
    yield from (int(directory.name) for directory in proc.glob("[0-9]*"))


def holders(inodes: Collection[int], proc: Path = PROC) -> dict[int, set[int]]:
    """Return by inode the processes that have a socket open. Those of other users are seen by root alone."""
    having: dict[int, set[int]] = {}
    for pid in pids(proc):
        for inode in _sockets(proc / str(pid)):
            if inode in inodes:
                having.setdefault(inode, set()).add(pid)
    return having


def parent(pid: int, proc: Path = PROC) -> int | None:
    """Return the process that a process comes from, 0 if that is outside; None if it has ended."""
    try:
        # PID (NAME) STATE PPID ...: the name may hold anything, so what follows the last parenthesis counts.
        state, number = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
        return None if state in "ZX" else int(number)
    except (OSError, ValueError):
        return None


def name(pid: int, proc: Path = PROC) -> str:
    """Return what a process calls itself, at first the name of its program, in one line; "?" if it has ended."""
    try:
        told = (proc / str(pid) / "comm").read_text(errors="replace").removesuffix("\n")
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in told)


def is_in_our_network(pid: int, proc: Path = PROC) -> bool:
    """Whether a process is in the network namespace that this one is in. Of other users' only root is told."""
    try:
        return os.readlink(proc / str(pid) / "ns" / "net") == os.readlink(proc / "self" / "ns" / "net")
    except OSError:
        return False


def user(pid: int, proc: Path = PROC) -> int | None:
    """Return the one user that a process is; None if it has ended, or is of two, as a set-uid program is."""
    try:
        found = _USERS.search((proc / str(pid) / "status").read_text(errors="replace"))
    except OSError:
        return None
    users = set(found.groups()) if found else set()
    return int(users.pop()) if len(users) == 1 else None


def described(pid: int, proc: Path = PROC) -> str:
    """Return the words for a process: what it calls itself, its number, its user."""
    uid = user(pid, proc)
    return f"{name(pid, proc)}, process {pid}" + (f" of {described_user(uid)}" if uid is not None else "")


def described_user(uid: int) -> str:
    """Return the words for a user: the name, or the number of one who has none."""
    if not _is_mapped(uid):
        return "another user"  # as seen by a service with PrivateUsers=: the kernel gives all of them one number
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _is_mapped(uid: int) -> bool:
    maps = ([int(number) for number in line.split()] for line in (PROC / "self" / "uid_map").read_text().splitlines())
    return any(first <= uid < first + count for first, _, count in maps)


def _sockets(directory: Path) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for link in (directory / "fd").iterdir():
            with contextlib.suppress(OSError):
                if match := _SOCKET.fullmatch(str(link.readlink())):
                    yield int(match[1])
