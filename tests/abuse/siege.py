"""A node with well-behaved clients and whoever attacks it: what the clients notice, and what is left afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

import psutil

from skywalker.limits import KIB, MIB
from tests.abuse.foe import Attack, Target, attacked
from tests.abuse.probe import Probe, Times, probing
from tests.admin.asking import Asker, node
from tests.authority import Authority
from tests.helpers import eventually, time_factor
from tests.workers.running_nodes import Node
from tests.workers.wire_client import SECURE
from workers.stats.close_reasons import Close

LIMITS: Final[dict[str, Any]] = {
    "max_connections": 200,
    "max_calls": 1000,
    "waiting_bytes": 16 * MIB,
    "output_bytes": 64 * KIB,
    "subscriber_buffer": 64 * KIB,
    "mesh_bytes": MIB,
    "half_frame_s": 0.2,
    "unread_output_s": 0.2,
    "idle_probe_s": 0.1,
    "greeting_s": 0.2,
    "max_strangers": 100,
}
"""Of the node: small enough for one attacker to meet every one of them soon."""

MET_WITHIN_S: Final = 10.0
"""Seconds for an attack to meet what it is for: how much of it fits into a window is up to the machine."""

MOST_ROUNDS: Final = 9
"""One is enough unless somebody is slower in it, as where the machine has other work: what is a weakness is there
every time."""

MOST_VOID: Final = 20
"""Rounds that do not count, since a processor stood still in them. If more do, of those that count the better ones
tell more: what is a weakness is there in these, too."""

WINDOW_S: Final = 0.3

SLOWER: Final = 3.0
"""How many times the quiet figure well-behaved clients may have to wait."""

FLOOR_S: Final = 0.004
"""What counts as quiet at least: on a machine with other work, one call in a hundred meets a processor that is taken,
and waits until that one's turn is over."""

BLINK_S: Final = SLOWER * FLOOR_S / 2
"""For how long a processor may stand still in a round that counts."""

MAX_TAKEN: Final = 32 * MIB
"""Memory that an attack may have the workers take: twice what the limits above allow, at most."""

MAX_KEPT: Final = 16 * MIB
"""And what they may keep of it, for the next calls."""

PEACE: Final = {"connections": 4.0, "waiting": 1.0, "unread_bytes": 0.0, "choked_connections": 0.0}
"""What the node has of what can be piled up while nobody attacks it: well-behaved clients, and one subscription."""

MAX_HELD: Final = KIB
"""Bytes that are counted for that."""


QUICK: Final = Times(0.0, 0.0)


class Series(NamedTuple):
    """What a node counts when an attack meets it."""

    name: str
    labels: dict[str, str]


def closed(why: Close) -> Series:
    """Return the connections that were closed for this."""
    return Series("skywalker_connections_closed_total", {"reason": why.label})


class Siege:
    """A node, and well-behaved clients of it. Made by besieged()."""

    def __init__(self, pids: list[int], asker: Asker, target: Target, probe: Probe) -> None:
        self.target = target
        self._asker = asker
        self._workers = [psutil.Process(pid) for pid in pids]
        self._probe = probe
        self._peak = 0

    def hold(self, attack: Attack, counts: Series | None = None) -> None:
        """Have the attack go on for a while, and again if it seems to hurt.

        Raises AssertionError if it hurts anybody, or if it is one that `counts` and has not done so.
        """
        counted = self._counted(counts)
        quiet: list[Times] = []
        noisy: list[Times] = []
        void = 0
        before = self._peak = self._taken()
        while not _hardly_slower(quiet, noisy, void) and len(noisy) < MOST_ROUNDS:
            # What is quick enough anywhere needs no comparison.
            usual = self._probe.measure(WINDOW_S) if noisy else QUICK
            with attacked(attack, self.target):
                slow = self._probe.measure(WINDOW_S, self._watch)
                eventually(lambda: self._has_met(counts, counted), within=MET_WITHIN_S)
            if self._probe.stood_still_s > BLINK_S * time_factor() and void < MOST_VOID:
                void += 1
            else:
                quiet.append(usual)
                noisy.append(slow)
            eventually(self._are_alone, within=10.0)
        eventually(self._is_over)
        peak, kept = self._peak - before, self._taken() - before
        told = f"{_text(noisy)} while attacked, {_text(quiet)} without"
        print(f"{told}, {peak / MIB:.1f} MiB taken, {kept / MIB:.1f} MiB kept, {void} rounds were void")
        assert _hardly_slower(quiet, noisy, void), told
        assert peak < MAX_TAKEN
        assert kept < MAX_KEPT

    def _has_met(self, counts: Series | None, counted: float) -> bool:
        assert counts is None or self._counted(counts) > counted, f"it has met nothing: {counts} does not grow"
        return True

    def _counted(self, counts: Series | None) -> float:
        return 0.0 if counts is None else self._asker.metric(counts.name, **counts.labels)

    def _watch(self) -> None:
        self._peak = max(self._peak, self._taken())

    def _taken(self) -> int:
        """Return the bytes of memory that the workers take."""
        return sum(worker.memory_info().rss for worker in self._workers)

    def _gauges(self) -> dict[str, float]:
        """Return how much of everything the workers hold that somebody could pile up."""
        return {name: self._asker.metric(f"skywalker_{name}") for name in (*PEACE, "held_bytes")}

    def _are_alone(self) -> bool:
        return self._asker.metric("skywalker_connections") == PEACE["connections"]

    def _is_over(self) -> bool:
        gauges = self._gauges()
        held = gauges.pop("held_bytes")
        assert gauges == PEACE, gauges
        assert held <= MAX_HELD, held
        return True


@contextlib.contextmanager
def besieged(workers: int, authority: Authority | None = None, **settings: Any) -> Iterator[Siege]:
    """Run a node with the LIMITS, and well-behaved clients of it. With an authority they speak nothing but TLS."""
    context = None
    if authority is not None:
        cert, key = authority.sign("127.0.0.1")
        settings |= {"tls_cert": cert, "tls_key": key}
        context = authority.context()
    with node(workers, context, pubsub=True, **LIMITS, **settings) as (found, asker), contextlib.ExitStack() as stack:
        if context is not None:
            host, _, port = found.pubsub_address.rpartition(":")
            for door in ((found.host, found.port), (host, int(port))):
                SECURE[door] = context
                stack.callback(SECURE.pop, door)
        served = Node(found)
        topics = tuple(served.topic_of(worker, "siege") for worker in range(workers))
        target = Target(served.address, served.pubsub, topics)
        with probing(target) as probe:
            yield Siege(served.first_pids, asker, target, probe)
        served.assert_unharmed()


def _lower_quartile(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 4]


def _hardly_slower(quiet: list[Times], noisy: list[Times], void: int) -> bool:
    """Return whether that is known of both kinds of calls, after so many rounds that do not count."""
    typical = median if void < MOST_VOID else _lower_quartile
    return bool(noisy) and all(
        typical(slow) <= SLOWER * max(median(usual), FLOOR_S * time_factor())
        for usual, slow in zip(zip(*quiet, strict=True), zip(*noisy, strict=True), strict=True)
    )


def _text(windows: list[Times]) -> str:
    """Return the times in milliseconds."""
    kinds = zip(Times._fields, zip(*windows, strict=True), strict=True)
    return ", ".join(f"{kind} {' '.join(f'{1000 * time:.1f}' for time in times)} ms" for kind, times in kinds)
