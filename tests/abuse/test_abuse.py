"""Attacks that go on for a while: well-behaved clients hardly notice, memory is bounded, and nothing stays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.access import token
from tests.abuse import access_attacks, junction_attacks, pubsub_attacks, tls_attacks
from tests.abuse.foe import Attack
from tests.abuse.siege import Series, Siege, besieged, closed
from tests.authority import Authority
from workers.stats.close_reasons import Close

pytestmark = pytest.mark.alone

BY_ITSELF: dict[str, Attack] = {
    "vanished": junction_attacks.vanished,
    "answers no ping": junction_attacks.answers_no_ping,
    "slow writers": junction_attacks.slow_writers,
    "half a frame": junction_attacks.half_a_frame,
    "never reads": junction_attacks.never_reads,
    "receivers that never read": junction_attacks.receivers_never_read,
    "subscribers that never read": junction_attacks.subscribers_never_read,
    "one subscriber under many ids": junction_attacks.one_subscriber_under_many_ids,
    "connections that are held": junction_attacks.connections_held,
    "unreadable frames": junction_attacks.unreadable,
    "many groups": junction_attacks.many_groups,
    "lines of senders": junction_attacks.lines_of_senders,
    "values given back": junction_attacks.given_back,
    **junction_attacks.FLOODS,
    "bombs": pubsub_attacks.bombs,
    "subscribers of pub/sub that never read": pubsub_attacks.subscribers_never_read,
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

OF_STRANGERS: dict[str, Attack] = {
    "guesses": access_attacks.guesses,
    "false proofs": access_attacks.false_proofs,
}

IN_TLS: dict[str, Attack] = {
    name: BY_ITSELF[name] for name in ("slow writers", "never reads", "subscribers that never read", "calls")
}
"""Those in which records matter: that are cut, that wait, or that are many."""

AT_TLS: dict[str, Attack] = {
    "half a handshake": tls_attacks.half_a_handshake,
    "handshakes begun": tls_attacks.handshakes_begun,
    "handshakes of a byte": tls_attacks.handshakes_of_a_byte,
    "records of a byte": tls_attacks.records_of_a_byte,
}

NO_HANDSHAKE = Series("skywalker_handshakes_failed_total", {})

COUNTS: dict[str, Series] = {
    "vanished": closed(Close.BROKEN),
    "answers no ping": closed(Close.SILENT),
    "slow writers": closed(Close.HALF_FRAME),
    "half a frame": closed(Close.HALF_FRAME),
    "never reads": closed(Close.UNREAD),
    "receivers that never read": closed(Close.UNREAD),
    "subscribers that never read": closed(Close.SLOW_SUBSCRIBER),
    "one subscriber under many ids": closed(Close.SLOW_SUBSCRIBER),
    "connections that are held": closed(Close.REFUSED),
    "unreadable frames": closed(Close.UNREADABLE),
    "bombs": closed(Close.UNREADABLE),
    "subscribers of pub/sub that never read": closed(Close.SLOW_SUBSCRIBER),
    **dict.fromkeys(OF_STRANGERS, closed(Close.UNAUTHORIZED)),
    **dict.fromkeys(("half a handshake", "handshakes begun", "handshakes of a byte"), NO_HANDSHAKE),
}
"""What the node counts of those attacks that have it close something."""

NEIGHBOURS = f"""
[access.nodes]
token = "{token.hash_of(access_attacks.SECRET)}"
node = true
[access.neighbours]
network = "127.0.0.1/32"
admin = true
send = ["*"]
recv = ["*"]
publish = ["*"]
subscribe = ["*"]
[cluster]
secret = "{access_attacks.SECRET}"
"""

assert COUNTS.keys() <= {*BY_ITSELF, *BESIDE_OTHERS, *FASTER, *OF_STRANGERS, *AT_TLS}


class Sieges:
    """A node of each kind for all attacks, until one has hurt it."""

    def __init__(self, directory: Path) -> None:
        self._config = directory / "skywalker.toml"
        self._config.write_text(NEIGHBOURS)
        self._open: dict[tuple[int, int, bool, bool], tuple[contextlib.ExitStack, Siege]] = {}

    def hold(
        self, workers: int, name: str, attack: Attack, *, max_rate: int = 0, access: bool = False, tls: bool = False
    ) -> None:
        """Have the attack of that name go on.

        It is against a node of so many workers, which serves so many calls a second, with `access` only whom it
        knows, and with `tls` speaks that.
        """
        kind = workers, max_rate, access, tls
        if kind not in self._open:
            stack = contextlib.ExitStack()
            config = {"config_file": self._config} if access else {}
            authority = Authority(self._config.parent) if tls else None
            self._open[kind] = stack, stack.enter_context(besieged(workers, authority, max_rate=max_rate, **config))
        stack, siege = self._open[kind]
        try:
            siege.hold(attack, COUNTS.get(name))
        except BaseException:
            del self._open[kind]
            stack.__exit__(*sys.exc_info())
            raise

    def close(self) -> None:
        """End them."""
        for stack, _ in self._open.values():
            stack.close()


@pytest.fixture(scope="module")
def sieges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sieges]:
    sieges = Sieges(tmp_path_factory.mktemp("sieges"))
    yield sieges
    sieges.close()


@pytest.mark.parametrize("name", BY_ITSELF)
def test_well_behaved_clients_of_a_worker_hardly_notice(sieges: Sieges, name: str) -> None:
    sieges.hold(1, name, BY_ITSELF[name])


@pytest.mark.parametrize("name", BESIDE_OTHERS)
def test_nor_do_those_of_two(sieges: Sieges, name: str) -> None:
    sieges.hold(2, name, BESIDE_OTHERS[name])


@pytest.mark.parametrize("name", FASTER)
def test_nor_do_those_of_a_worker_that_is_asked_as_fast_as_can_be_and_has_a_rate(sieges: Sieges, name: str) -> None:
    sieges.hold(1, name, FASTER[name], max_rate=1000)


@pytest.mark.parametrize("name", OF_STRANGERS)
def test_nor_do_those_of_one_that_strangers_would_like_to_enter(sieges: Sieges, name: str) -> None:
    sieges.hold(1, name, OF_STRANGERS[name], access=True)


@pytest.mark.parametrize("name", [*IN_TLS, *AT_TLS])
def test_nor_do_those_of_one_that_speaks_tls(sieges: Sieges, name: str) -> None:
    sieges.hold(1, name, (IN_TLS | AT_TLS)[name], tls=True)
