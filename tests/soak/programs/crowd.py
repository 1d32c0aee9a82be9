"""Clients without manners, as in tests.chaos, on topics that only this shift has."""

from __future__ import annotations

import pickle
import random
import selectors
import socket
import sys
from pathlib import Path
from typing import Any, Final, cast

from tests.chaos.client import Call
from tests.chaos.crowd import TIMEOUTS_MS, Crowd, Guest
from tests.chaos.starvation import Starvation
from tests.helpers import time_factor
from tests.soak.programs.shift import Shift
from tests.soak.stage import Stage
from tests.workers.processes import Node

GUESTS: Final = 40

LAST_WORDS_S: Final = 3.0
"""Seconds, besides their own time, for the last calls to be answered: their worker may be dead just now."""


class Passer(Guest):
    """One whose topics nobody has used before."""

    shift = ""

    def call(self, kind: str, topic: str, timeout_s: float, group: str | None = None) -> Call | None:
        """Make a call."""
        return super().call(kind, f"{self.shift}/{topic}", timeout_s, group)


class Local(socket.socket):
    """A connection to a Unix socket, for those who think it is TCP."""

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)

    def setsockopt(self, level: int, *option: Any) -> None:
        """Set an option that it has."""
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


class Processes:
    """The processes below the supervisors of all nodes, for who wants to know how long they waited for a core."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def workers(self) -> list[int]:
        """Return their pids."""
        texts = [Path(f"/proc/{place.pid}/task/{place.pid}/children").read_text() for place in self._stage.places]
        return [int(pid) for text in texts for pid in text.split()]


def main() -> None:
    """Have the crowd act until the input ends; put all that it noted into a file."""
    shift = Shift()
    dice = random.Random(shift.seed)

    def some_door() -> tuple[socket.socket, str]:
        place = dice.choice(shift.stage.places)
        if dice.random() < 0.5 and not shift.stage.authority:
            return shift.stage.dial(place.address, None), place.name
        sock = Local()
        sock.connect(place.unix)
        return sock, place.name

    crowd = Crowd(some_door, dice)
    Passer.shift = f"crowd-{shift.seed}"
    crowd.clients += [Passer(crowd, number) for number in range(GUESTS)]
    starvation = Starvation(cast(Node, Processes(shift.stage)), crowd.at)
    starvation.look()
    crowd.selector.register(sys.stdin, selectors.EVENT_READ, shift.over.set)
    crowd.run(0.0)
    while not shift.over.is_set():
        crowd.run_on(0.1)
    crowd.selector.unregister(sys.stdin)
    crowd.finish(max(TIMEOUTS_MS) / 1000 + LAST_WORDS_S * time_factor())
    noted = crowd.calls, crowd.connections, crowd.complaints, crowd.slowest_turn_s + starvation.longest_s
    Path(shift.path).write_bytes(pickle.dumps(noted))
    for call in crowd.calls:
        shift.counts[f"{call.kind} {call.outcome}"] += 1
    shift.counts["connections"] = len(crowd.connections)
    shift.end()


if __name__ == "__main__":
    main()
