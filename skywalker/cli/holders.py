"""Which nodes run on this machine, and which processes hold which sockets: what /proc tells."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from skywalker.claim import claimed

PROC: Final = Path("/proc")

_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")


def claims(proc: Path = PROC) -> dict[tuple[str, int], int]:
    """Return the inode of the socket by which a node claims each address, by host and port.

    They are those of this network namespace; everybody may know them. Raises OSError.
    """
    found: dict[tuple[str, int], int] = {}
    for line in (proc / "net" / "unix").read_text(errors="replace").splitlines()[1:]:
        # Num: RefCount Protocol Flags Type St Inode Path
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and (address := claimed(fields[7])):
            found[address] = int(fields[6])
    return found


def holders(inodes: Collection[int], proc: Path = PROC) -> dict[int, set[int]]:
    """Return by inode the processes that have a socket open. Those of other users are seen by root alone."""
    having: dict[int, set[int]] = {}
    for directory in proc.glob("[0-9]*"):
        for inode in _sockets(directory):
            if inode in inodes:
                having.setdefault(inode, set()).add(int(directory.name))
    return having


def holder(inode: int, proc: Path = PROC) -> int | None:
    """Return the process that has a socket open; None if none does that we may see."""
    pids = holders({inode}, proc).get(inode, set())
    # A child that was forked just now still has what its parent has.
    return min((pid for pid in pids if parent(pid, proc) not in pids), default=None)


def parent(pid: int, proc: Path = PROC) -> int:
    """Return the process that a process comes from; 0 if it has ended."""
    try:
        # PID (NAME) STATE PPID ...: the name may hold anything, so what follows the last parenthesis counts.
        return int((proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, LookupError, ValueError):
        return 0


def program(pid: int, proc: Path = PROC) -> str:
    """Return the name of the program that a process runs, or "?" if it has ended."""
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"


def _sockets(directory: Path) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for link in (directory / "fd").iterdir():
            with contextlib.suppress(OSError):
                if match := _SOCKET.fullmatch(str(link.readlink())):
                    yield int(match[1])
