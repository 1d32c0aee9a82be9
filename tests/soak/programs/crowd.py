"""Clients that know the wire and nothing else, as those of the simulation, on topics that only this shift has."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.chaos.clock import Clock
from tests.chaos.crowd import Crowd
from tests.chaos.net import Door
from tests.chaos.stalls import Starvation
from tests.helpers import time_factor
from tests.promises import record
from tests.promises.history import TRUE
from tests.simulation.plan import SPEAK_S, plan
from tests.soak.programs.shift import Shift
from tests.soak.stage import Place, Stage

ROUNDS: Final = 4
"""Of a plan each: longer than any shift."""

LAST_WORDS_S: Final = 4.0
"""Seconds for the last calls to be answered: their worker may be dead just now."""


def pids(stage: Stage) -> Iterator[int]:
    """Yield the processes below the supervisors of all nodes."""
    for place in stage.places:
        yield from map(int, Path(f"/proc/{place.pid}/task/{place.pid}/children").read_text().split())


def local(place: Place) -> socket.socket:
    """Connect to a node as a user of its machine."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(place.unix)
    except OSError:
        sock.close()
        raise
    return sock


def main() -> None:
    """Have the crowd speak until the input ends."""
    shift = Shift()
    shift.watch()
    stage = shift.stage
    clock = Clock(shift.seed)

    def doors(number: int, kind: str) -> Mapping[Door, str]:
        if kind == "caller" and (number % 2 or stage.authority):
            return {lambda place=place: local(place): place.name for place in stage.places}
        return {
            lambda place=place: stage.dial(place.pubsub if kind == "pubsub" else place.address, stage.context()):
            place.name for place in stage.places
        }  # fmt: skip

    luck = random.Random(shift.seed)
    rounds = [plan(luck.getrandbits(32)) for _ in range(ROUNDS)]
    crowd = Crowd(clock, rounds, SPEAK_S, doors, f"crowd-{shift.seed}/")
    Starvation(clock, lambda: pids(stage)).look()
    clock.go_on(ROUNDS * SPEAK_S, shift.over.is_set)
    connections = crowd.finish(LAST_WORDS_S * time_factor())
    record.save(Path(f"{shift.path}.history"), connections, clock.stalls)
    crowd.close()
    calls = Counter((call.method, call.answer) for each in connections for call in each.calls.values())
    shift.counts.update({"send met": calls[":send!", TRUE], "calls": calls.total(), "connections": len(connections)})
    shift.end()


if __name__ == "__main__":
    main()
