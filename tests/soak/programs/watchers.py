"""Who watches the nodes over HTTP: scrapes, consoles, and listeners to events that come and go."""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
import time
from typing import Final

from tests.soak.programs.shift import Shift
from tests.soak.stage import Place

PATHS: Final = (
    "/metrics", "/api/state", "/api/history", "/api/topics", "/api/connections", "/api/ring", "/health", "/ready", "/",
)  # fmt: skip

PAUSE_S: Final = 0.1
"""Between two questions: more would be the agents' business, and not that of those who use the node."""


def ask(shift: Shift, place: Place, dice: random.Random) -> None:
    """Ask for one thing after the other, over connections that last for some."""
    while not shift.over.is_set():
        connection = shift.stage.http(place)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            for _ in range(dice.randint(1, 50)):
                path = dice.choice(PATHS)
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                shift.counts[f"status {response.status}"] += 1
                well = path in ("/health", "/ready")
                if response.status != 200 and not (well and response.status == 503):
                    shift.complain(f"{place.name}: {path} has the status {response.status}")
                if shift.over.wait(dice.expovariate(1 / PAUSE_S)):
                    return
        shift.over.wait(0.1)


def listen(shift: Shift, place: Place, dice: random.Random) -> None:
    """Listen to events for a while, again and again; some listeners leave without a word, or do not read."""
    while not shift.over.is_set():
        connection = shift.stage.http(place)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/api/events")
            response = connection.getresponse()
            shift.counts[f"listeners, status {response.status}"] += 1
            until = time.monotonic() + dice.uniform(0.5, 10)
            if dice.random() < 0.3:
                shift.over.wait(until - time.monotonic())
            while time.monotonic() < until and not shift.over.is_set() and response.readline():
                shift.counts["lines of events"] += 1
        shift.over.wait(0.1)


def main() -> None:
    """Watch until the input ends."""
    shift = Shift()
    shift.watch()
    threads = [
        threading.Thread(target=watch, args=(shift, place, random.Random(f"{shift.seed} {place.name} {number}")))
        for place in shift.stage.places
        for number, watch in enumerate((ask, ask, listen, listen))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shift.end()


if __name__ == "__main__":
    main()
