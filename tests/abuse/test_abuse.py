"""Attacks that go on for a while: well-behaved clients hardly notice, memory is bounded, and nothing stays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest

from tests.abuse import junction_attacks, pubsub_attacks
from tests.abuse.foe import Attack
from tests.abuse.siege import Siege, besieged

ALONE: dict[str, Attack] = {
    "silent": junction_attacks.silent,
    "vanished": junction_attacks.vanished,
    "slow writers": junction_attacks.slow_writers,
    "a byte at a time": junction_attacks.a_byte_at_a_time,
    "half a frame": junction_attacks.half_a_frame,
    "never reads": junction_attacks.never_reads,
    "slow readers": junction_attacks.slow_readers,
    "receivers that never read": junction_attacks.receivers_never_read,
    "subscribers that never read": junction_attacks.subscribers_never_read,
    "one subscriber under many ids": junction_attacks.one_subscriber_under_many_ids,
    "connections": junction_attacks.connections,
    "connections that are held": junction_attacks.connections_held,
    "unreadable frames": junction_attacks.unreadable,
    "many groups": junction_attacks.many_groups,
    "one id": junction_attacks.one_id,
    "all at once": junction_attacks.all_at_once,
    "lines of senders": junction_attacks.lines_of_senders,
    "values given back": junction_attacks.given_back,
    **junction_attacks.FLOODS,
    "bombs": pubsub_attacks.bombs,
    "allowed bombs": pubsub_attacks.allowed_bombs,
    "subscribers of pub/sub that never read": pubsub_attacks.subscribers_never_read,
    "unknown codes": pubsub_attacks.unknown_codes,
}

BESIDE_OTHERS: dict[str, Attack] = {
    "colliding names": junction_attacks.colliding_names,
    "subscriptions that come and go": junction_attacks.subscriptions_that_come_and_go,
    "changes of mind": pubsub_attacks.changes_of_mind,
}

FASTER: dict[str, Attack] = {
    "calls without a rest": junction_attacks.calls_without_a_rest,
    "publications without a rest": pubsub_attacks.publications_without_a_rest,
}


class Sieges:
    """A node of each kind for all attacks, until one has hurt it."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[contextlib.ExitStack, Siege]] = {}

    def hold(self, workers: int, attack: Attack, max_rate: int = 0) -> None:
        """Have the attack go on against a node of so many workers, which serves so many calls a second."""
        kind = workers, max_rate
        if kind not in self._open:
            stack = contextlib.ExitStack()
            self._open[kind] = stack, stack.enter_context(besieged(workers, max_rate=max_rate))
        stack, siege = self._open[kind]
        try:
            siege.hold(attack)
        except BaseException:
            del self._open[kind]
            stack.__exit__(*sys.exc_info())
            raise

    def close(self) -> None:
        """End them."""
        for stack, _ in self._open.values():
            stack.close()


@pytest.fixture(scope="module")
def sieges() -> Iterator[Sieges]:
    sieges = Sieges()
    yield sieges
    sieges.close()


@pytest.mark.parametrize("attack", ALONE.values(), ids=ALONE.keys())
def test_well_behaved_clients_of_a_worker_hardly_notice(sieges: Sieges, attack: Attack) -> None:
    sieges.hold(1, attack)


@pytest.mark.parametrize("attack", BESIDE_OTHERS.values(), ids=BESIDE_OTHERS.keys())
def test_nor_do_those_of_two(sieges: Sieges, attack: Attack) -> None:
    sieges.hold(2, attack)


@pytest.mark.parametrize("attack", FASTER.values(), ids=FASTER.keys())
def test_nor_do_those_of_a_worker_that_is_asked_as_fast_as_can_be_and_has_a_rate(
    sieges: Sieges, attack: Attack
) -> None:
    sieges.hold(1, attack, max_rate=1000)
