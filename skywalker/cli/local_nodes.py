"""Which nodes run on this machine, told in a way that no other user can forge.

A node is a process that calls itself one, as no other user can have an ordinary process do, and has a listener open
that its own user or root made: one that somebody else passed to it, as one may over a Unix socket, does not count. A
set-uid program runs as two users for a while, and is none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from skywalker import processes
from skywalker.address import Address
from skywalker.listeners import Listener, in_the_way, listeners
from skywalker.processes import PROC

ROOT: Final = 0


def nodes(proc: Path = PROC) -> dict[Address, int]:
    """Return the first process of each node, by where it listens. Those of other users are seen by root alone."""
    there = {each.inode: each for each in listeners(proc)}
    ports = _ports(proc)
    found: dict[Address, int] = {}
    for inode, pids in processes.holders(there, proc).items():
        listener = there[inode]
        for pid in pids:
            if ports.get(pid) == listener.port and may_have(pid, listener, proc):
                found[Address(listener.host, listener.port)] = pid
    return found


def draining(port: int, proc: Path = PROC) -> set[int]:
    """Return the first processes of nodes that had a port, and do not listen there any more: ours, or for root all."""
    there = {each.inode for each in listeners(proc) if each.port == port}
    listening = set().union(*processes.holders(there, proc).values())
    us = os.geteuid()
    named = {
        pid for pid, its_port in _ports(proc).items() if its_port == port and us in (ROOT, processes.user(pid, proc))
    }
    return {pid for pid in named - listening if processes.is_in_our_network(pid, proc)}


def likely(listener: Listener, port: int, proc: Path = PROC) -> int | None:
    """Return the first process of the node with a port that a listener may be of; None if there is none.

    It is more than a guess, and less than known: only root can see what another user's process has open.
    """
    named = (pid for pid, its_port in _ports(proc).items() if its_port == port)
    return next((pid for pid in named if may_have(pid, listener, proc)), None)


def serves(pid: int, at: Address, proc: Path = PROC) -> bool:
    """Whether all that listens at an address may be that process's: then no other user gets what is sent there."""
    there = in_the_way(at.host, at.port, proc)
    return bool(there) and all(may_have(pid, each, proc) for each in there)


def may_have(pid: int, listener: Listener, proc: Path = PROC) -> bool:
    """Whether a listener may be a process's own: its user made it, or root, for --user or as systemd."""
    user = processes.user(pid, proc)
    return user is not None and listener.user in (ROOT, user)


def _ports(proc: Path) -> dict[int, int]:
    """Return what calls itself the first process of a node, and the port that it names."""
    named = {pid: port for pid in processes.pids(proc) if (port := processes.node_port(pid, proc)) is not None}
    parents = {pid: processes.parent(pid, proc) for pid in named}
    # A child that was forked just now is still called what its parent is, and so is one that has ended.
    return {pid: port for pid, port in named.items() if parents[pid] is not None and parents[pid] not in named}
