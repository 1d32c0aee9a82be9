"""Real workers killed or replaced at random under load: nobody is told what is not so, and few that nobody knows.

    python -m tests.chaos.kills --kills 200
    python -m tests.chaos.kills --reloads 200       # no value is taken twice

The clients of one node send and listen as fast as they can. tests/simulation/kills.py does the same in virtual time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import selectors
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from skywalker.embedding import embedded
from skywalker.wire import junction as wire
from tests.workers.processes import events_of
from tests.workers.wire_client import ConnectionEnded, WireClient

CLIENTS: Final = 16
AT_ONCE: Final = 8
"""Calls that each client has under way."""

TOPICS: Final = 16
TIMEOUTS_MS: Final = (5, 20, 50, 200, 1000)
UNKNOWN: Final = "unknown-outcome"

LAST_S: Final = 4.0
"""Seconds in which the last calls are answered."""


@dataclass
class Tally:
    """What clients were told, and what they were given."""

    told: dict[str, str] = field(default_factory=dict)  # by value: what its sender heard
    given: dict[str, int] = field(default_factory=dict)  # by value: how often somebody received it
    times: int = 0
    """So often somebody was killed, or all were replaced."""
    log: str = ""
    """What the node said."""

    def crashes(self) -> list[str]:
        """Return how workers ended that nobody killed."""
        ends = [ended["how"].strip('"') for ended in events_of(self.log, "worker-ended")]
        return [end for end in ends if end != "signal SIGKILL"]

    def untrue(self) -> list[str]:
        """Return the values whose senders heard that nobody came, though somebody has them."""
        return [value for value, told in self.told.items() if told == "timed out" and value in self.given]

    def doubled(self) -> int:
        """Return how many values came more than once, of those that one of a group takes."""
        return sum(times > 1 for times in self.given.values())

    def unknown(self) -> int:
        """Return how many sends nobody knows of."""
        return sum(told == UNKNOWN for told in self.told.values())

    def __str__(self) -> str:
        met = sum(told == "true" for told in self.told.values())
        return (
            f"{self.times} times, {met} rendezvous, {self.unknown()} sends of which nobody knows, "
            f"{self.unknown() / max(1, self.times):.2f} each; {self.doubled()} values were taken twice, "
            f"{len(self.untrue())} senders heard that nobody came though somebody had their value"
        )


class Client:
    """One connection at a time, over which as many calls are under way as may be."""

    def __init__(self, name: str, port: int, luck: random.Random, tally: Tally) -> None:
        self.name = name
        self.is_done = False
        self._port = port
        self._luck = luck
        self._tally = tally
        self._number = 0
        self.connect()

    def connect(self) -> None:
        """Connect anew, and make the first calls."""
        self._wire = WireClient.open(("127.0.0.1", self._port)).say_hello()
        self.socket = self._wire.socket
        self._waiting: dict[int, str] = {}
        self._leaves = False
        self._fill()

    def is_idle(self) -> bool:
        """Whether all calls of it are answered."""
        return not self._waiting

    def _fill(self) -> None:
        while len(self._waiting) < AT_ONCE and not self.is_done and not self._leaves:
            self._number += 1
            topic, timeout_ms = f"topic{self._luck.randrange(TOPICS)}", self._luck.choice(TIMEOUTS_MS)
            is_send = self._luck.random() < 0.5
            value = self._waiting[self._number] = f"{self.name}.{self._number}" if is_send else ""
            with contextlib.suppress(OSError):  # what the other end has said is still to be read, and then its end
                self._wire.call(":send!" if is_send else ":take!", self._number, timeout_ms, topic, value or "group")

    def ready(self) -> bool:
        """Read what has come, and call again; return False at the end."""
        try:
            while self._wire.has_input():
                self._hear(*self._wire.reply())
        except ConnectionEnded:
            return False
        self._fill()
        return not (self._leaves and self.is_idle())

    def _hear(self, method: str, id: int, result: Any) -> None:
        if method not in (":send!", ":take!"):
            return
        value = self._waiting.pop(id)
        is_error = isinstance(result, msgpack.ExtType) and result.code != wire.TIMEOUT_TYPE
        told = "true" if result is True else msgpack.unpackb(result.data)[0] if is_error else "timed out"
        self._leaves = self._leaves or told == "draining"
        if method == ":send!":
            self._tally.told[value] = told
        elif isinstance(result, str):
            self._tally.given[result] = self._tally.given.get(result, 0) + 1


def _serve(clients: list[Client], seconds: float, wait_for_all: bool = False) -> None:
    """Have clients call for so long, or until all have their answers."""
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while time.monotonic() < until and not (wait_for_all and all(client.is_idle() for client in clients)):
            for key, _ in selector.select(0.01):
                client = key.data
                if not client.ready():
                    selector.unregister(client.socket)
                    client.socket.close()
                    client.connect()
                    selector.register(client.socket, selectors.EVENT_READ, client)


def run(times: int, workers: int, seed: int, *, reloads: bool = False) -> Tally:
    """Kill so many workers of a node, or replace all so often, and return what its clients were told."""
    luck, tally = random.Random(seed), Tally()
    with embedded(workers=workers) as node:
        clients = [Client(f"client{n}", node.port, luck, tally) for n in range(CLIENTS)]
        while tally.times < times:
            _serve(clients, 0.05 + 0.2 * luck.random())
            if len(pids := node.worker_pids()) == workers:
                os.kill(*(node.pid, signal.SIGHUP) if reloads else (luck.choice(pids), signal.SIGKILL))
                tally.times += 1
        for client in clients:
            client.is_done = True
        _serve(clients, LAST_S, wait_for_all=True)
        for client in clients:
            client.socket.close()
        tally.log = node.log
    return tally


def main() -> int:
    """Kill as many as are wanted; return 1 if somebody was told what is not so, or a worker ended by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many workers are killed")
    parser.add_argument("--reloads", type=int, help="replace all so often, and kill nobody")
    parser.add_argument("--workers", type=int, default=2, help="of the node")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    began = time.monotonic()
    reloads = options.reloads is not None
    tally = run(options.reloads if reloads else options.kills, options.workers, options.seed, reloads=reloads)
    print(f"seed {options.seed}, {time.monotonic() - began:.0f} s: {tally}")
    print(*tally.untrue()[:5], sep="\n")
    if tally.crashes():
        print(f"workers that nobody killed ended by {', '.join(tally.crashes())}:\n{tally.log}")
    return int(bool(tally.untrue() or tally.crashes() or (reloads and tally.doubled())))


if __name__ == "__main__":
    sys.exit(main())
