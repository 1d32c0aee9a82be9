"""How much memory a worker may come to take, by its limits, and how much it may have, by those of the kernel."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError
from skywalker.limits import MIB, Limits

OWN: Final = 64 * MIB
"""Bytes of address space that a worker takes while nothing waits: 39 MiB measured, and some for its connections."""

UNLIMITED: Final = 2**60
"""Bytes that are no limit: what an old kernel says where there is none."""

CGROUPS: Final = Path("/sys/fs/cgroup")


def wanted(limits: Limits, workers: int) -> int:
    """Return the bytes that one of so many workers may come to take; who does not read may have it take some more.

    What is counted for calls that wait is what they take, but for some 7 %. Where calls of many sizes come and go,
    there are gaps between them: up to a fifth more was measured.
    """
    held = OWN + limits.waiting_bytes + limits.waiting_bytes // 8 + limits.mesh_bytes * (workers - 1)
    return held * 5 // 4


def shown(count: int) -> str:
    """Return bytes as a setting may have them: 144MiB."""
    return f"{count // MIB}MiB"


def waiting_bytes(limits: Limits, workers: int, most: int) -> int:
    """Return the `waiting_bytes` with which a worker takes at most so many bytes; 0 if none are few enough."""
    return max(0, (most * 4 // 5 - OWN - limits.mesh_bytes * (workers - 1)) * 8 // 9 // MIB * MIB)


def advice(limits: Limits, workers: int, most: int, instead: str) -> str:
    """Return what to do where a worker may have only so many bytes."""
    fitting = waiting_bytes(limits, workers, most)
    return f"waiting_bytes of at most {shown(fitting)}, or {instead}" if fitting else instead


def shortage(limits: Limits, workers: int, there: int) -> str:
    """Return why a worker that may have so many bytes has too few, and what to do; nothing if it has enough."""
    needed = wanted(limits, workers)
    if needed <= there:
        return ""
    instead = "each process more, by ulimit -v or LimitAS="
    return (
        f"a process may have {shown(there)} (ulimit -v), and a worker may come to take {shown(needed)}, and would die "
        f"of it: give {advice(limits, workers, there, instead)}"
    )


def address_space() -> int | None:
    """Return the bytes that each process may address, as ulimit -v and LimitAS= bound it; None if there is no bound."""
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((each for each in soft if each != resource.RLIM_INFINITY), default=None)


def check(limits: Limits, workers: int) -> None:
    """Raise ConfigError if a worker would die, rather than answer busy, before its limits are reached."""
    there = address_space()
    if there is not None and (why := shortage(limits, workers, there)):
        raise ConfigError(f"limits.waiting_bytes: {why}")


def of_group(proc: Path = Path("/proc"), cgroups: Path = CGROUPS) -> int | None:
    """Return the bytes that all processes of our control group may take, as MemoryMax= has it; None if any number."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds == "":
            found += _bounds(cgroups, path, "memory.max")
        elif "memory" in kinds.split(","):
            found += _bounds(cgroups / "memory", path, "memory.limit_in_bytes")
    return min((each for each in found if each < UNLIMITED), default=None)


def _bounds(top: Path, path: str, file: str) -> list[int]:
    """Return the bounds of a group and of all that it is in. Those that are not seen from in here do not count."""
    inner = top / path.lstrip("/")
    found = []
    for group in (inner, *inner.parents):
        with contextlib.suppress(OSError, ValueError):  # there is none, or it says "max"
            found.append(int((group / file).read_text()))
        if group == top:
            break
    return found
