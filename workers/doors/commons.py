"""What the connections of one worker have in common: each is made with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from skywalker.limits import Limits
from skywalker.members import Place
from workers.access.admission import Admission
from workers.calls.interests import Interests
from workers.calls.newcomer import Newcomer
from workers.calls.own_node import OwnNode
from workers.calls.owners import Owners
from workers.calls.worker_states import Standing
from workers.core._core import Core
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop, Turn
from workers.engine.machine import Machine
from workers.engine.transport import Transport
from workers.stats.log import Log


class OtherNodes(Protocol):
    """The links to other nodes, as far as a connection has to do with them: it may become one."""

    @property
    def came_count(self) -> int:
        """How many have."""

    def meet(self, newcomer: Newcomer, wanted: Place, *, relayed: bool = False) -> tuple[dict[str, Any], bool]:
        """Return what one who wants the worker in a place is told of this one, and whether it is to be welcome.

        It is `relayed` if it does not come by a connection of its own.
        """

    def welcome(self, sock: Transport, unwritten: bytes, newcomer: Newcomer) -> None:
        """Go on with a connection over which one has said who it is, and to whom `unwritten` is still to be said."""


@dataclass(frozen=True)
class Commons:
    """Of one worker. With `credentials`, its doors speak TLS."""

    node: OwnNode
    limits: Limits
    machine: Machine
    loop: Loop
    turn: Turn
    core: Core
    log: Log
    standing: Standing
    owners: Owners
    interests: Interests
    admission: Admission
    peers: OtherNodes
    credentials: Credentials | None
