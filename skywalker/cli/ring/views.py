"""Whether the nodes of a cluster see the same ring: each is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from skywalker.errors import RemoteProtocolError, SkywalkerError, TimedOut
from skywalker.members import Member, Snapshot

if TYPE_CHECKING:
    from skywalker.clients.blocking.client import Client

Connect = Callable[..., "Client"]

AT_ONCE: Final = 64
"""Nodes that are asked at a time, so that those that do not answer take the time of one or two."""


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """What one node answered."""

    member: Member
    ring: str | None  # the version that it uses; None if it did not say
    problem: str = ""  # in words; empty if it uses the ring that we were told of
    unproven: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Where it has found somebody who is no node of the cluster, and why that is none."""


def snapshot_of(junction: Client, timeout: float) -> Snapshot:
    """Return the ring that a node uses. Raises RemoteProtocolError if what it tells cannot be one."""
    told = junction.nodes(timeout)
    members = [member for data in told if (member := Member.parse(data)) is not None]
    if len(members) < len(told):
        raise RemoteProtocolError(
            f"of the {len(told)} nodes that the node lists, {len(told) - len(members)} make no sense"
        )
    if not members:
        raise RemoteProtocolError("the node lists none: it is leaving, and knows no other")
    return Snapshot(members)


def views(snapshot: Snapshot, timeout: float, connect: Connect) -> list[View]:
    """Ask all nodes of a ring which they use, in `timeout` seconds each; return the answers in the ring's order.

    Connections are made by `connect`, which takes what skywalker.connect() does.
    """
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda member: _view(member, snapshot, timeout, connect), snapshot))


def _view(member: Member, snapshot: Snapshot, timeout: float, connect: Connect) -> View:
    try:
        with connect(str(member.address), direct=False, connect_timeout=timeout) as junction:
            told = junction.hello(timeout)
            node, ring = told.get("node"), told.get("ring")
            if node != member.id:
                return View(member, None, "is not who answers at its address")
            if not isinstance(ring, str):
                return View(member, None, "does not say which ring it uses")
            unproven = told.get("unproven")
            unproven = {str(at): str(why) for at, why in unproven.items()} if isinstance(unproven, dict) else {}
            if ring == snapshot.version:
                return View(member, ring, unproven=unproven)
            different = "; ".join(_difference(junction, snapshot, timeout))
            return View(member, ring, f"uses another ring, {ring}: {different}", unproven)
    except TimedOut:
        return View(member, None, f"did not answer within {timeout:g} s")
    except SkywalkerError as error:
        return View(member, None, f"did not answer: {error}")


def _difference(junction: Client, snapshot: Snapshot, timeout: float) -> list[str]:
    """Return what is different in the ring that a node uses, as far as it tells."""
    try:
        return snapshot.diff(snapshot_of(junction, timeout))
    except SkywalkerError as error:
        return [f"what is different, it does not tell: {error}"]
