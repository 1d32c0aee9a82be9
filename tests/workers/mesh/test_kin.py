"""What a worker tells its siblings of one that is dead, and finds out itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.workers.one_worker import OneWorker
from tests.workers.turns import turn_at
from tests.workers.wire_client import packed
from workers.engine.loop import Turn
from workers.mesh.kin import Kin
from workers.mesh.messages import COUNTED, DOUBT, GIVE, INQUIRE, LISTEN, OF, TAKEN, Packets
from workers.stats.hands import CELLS, Hands, life_of

OWNER, HOME = 1, 2
"""Slots of siblings; the worker itself has another."""

LIVES = {OWNER: life_of(8), HOME: life_of(9)}
SMALL_BUFFER = 8 * 1024
LARGE = 60_000
"""Bytes of a value that a client which does not read takes only in part."""


class Sibling:
    """The other end of a worker's link to one, which says what the test has it say."""

    def __init__(self, worker: OneWorker, slot: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for sock in (ours, theirs):
            sock.setblocking(False)
        self._worker = worker
        self._packets = Packets(ours, 1 << 20, turn_at(time.monotonic()), b"")
        self._packets.link = self._packets  # type: ignore[assignment]  # nobody has it flush but say()
        worker.core.siblings.connect(slot, theirs, LIVES[slot])

    def say(self, *messages: tuple[int, bytes, bytes] | tuple[int, bytes, bytes, bytes, bytes]) -> None:
        """Say these at once, and have the worker hear them."""
        for message in messages:
            self._packets.tell(*message)
        self._packets.flush()
        self._worker.turn()

    def heard(self, *kinds: int) -> list[tuple[int, bytes, bytes]]:
        """Return what the worker has said of these kinds: the kind, the number, and what comes next."""
        found = []
        while True:
            try:
                messages = self._packets.read()
            except BlockingIOError:
                return [each for each in found if each[0] in kinds]
            found += [(each[0][0], each[1], each[2]) for each in messages if len(each) > 2]

    def close(self) -> None:
        """It is dead."""
        self._packets.close()


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    made = OneWorker(workers=3, slot=0, tokens=range(-(2**63), 2**63, 2**58))
    yield made
    for link in made.core.siblings.all():
        link.close("the test is over")
    made.close()


@pytest.fixture
def siblings(worker: OneWorker) -> Iterator[dict[int, Sibling]]:
    made = {slot: Sibling(worker, slot) for slot in (OWNER, HOME)}
    yield made
    for each in made.values():
        each.close()


def topic_at(worker: OneWorker, slot: int) -> str:
    """Return a topic that the worker in that slot owns."""
    return next(name for name in map(str, range(1000)) if worker.core.router.owner(packed(name)).place.worker == slot)


def test_who_may_yet_have_a_value_is_told_though_the_end_of_the_dead_ones_link_is_still_to_come(
    worker: OneWorker, siblings: dict[int, Sibling]
) -> None:
    owner, home = siblings[OWNER], siblings[HOME]
    client = worker.connect(send_buffer=SMALL_BUFFER)
    for id in range(2):
        client.call(":take!", id, 60_000, topic_at(worker, OWNER), "group")
    worker.turn()
    first, second = (number for _, number, _ in owner.heard(LISTEN))
    sends, asked = [life_of(11), life_of(12)], life_of(13)
    owner.say(
        (OF, sends[0], LIVES[HOME]),
        (GIVE, first, packed("x" * LARGE)),
        (OF, sends[1], LIVES[HOME]),
        (GIVE, second, packed("y")),
    )
    assert not home.heard(TAKEN, DOUBT), "the client does not read"
    home.say((INQUIRE, asked, LIVES[OWNER]))
    heard = home.heard(TAKEN, DOUBT, COUNTED)
    assert heard[:-1] == [(DOUBT, sends[0], LIVES[OWNER])], "the other one is taken back"
    assert heard[-1][:2] == (COUNTED, asked)
    client.close()


def test_where_it_is_not_known_what_a_dead_one_was_giving_all_that_waits_at_siblings_is_in_doubt() -> None:
    hands = Hands(2)
    for part in range(2):
        hands.begin(part)
    dead = hands.hand(1)
    doubted: list[str] = []

    class Link:
        closed = False
        outbound: Link

        def doubt_all(self) -> None:
            doubted.append("all")

        def doubted(self, _: bytes) -> None:
            doubted.append("one")

        is_over = False

    link = Link()
    link.outbound = link
    now = time.monotonic()
    kin = Kin(Turn(now, turn_at(now).counters, time.monotonic, hands.hand(0)))
    kin.add(LIVES[OWNER], link)  # type: ignore[arg-type]  # all that is asked of one
    for number in range(CELLS):  # more than there is room for
        dead.add(LIVES[OWNER], life_of(number), kin.life, life_of(number))
        if not number:
            kin.read_hand(dead.life)
            assert doubted.pop() == "one"
    kin.read_hand(dead.life)
    assert doubted == ["all"]
    for _ in range(2):
        hands.begin(1)
    kin.read_hand(dead.life)
    assert doubted == ["all"] * 2, "others have written there since"
