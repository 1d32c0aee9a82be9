"""What has ended by TLS is gone at once, by reference counting alone: a worker hardly ever has the collector look.

What still referred to itself would stay, with all that it holds: some 60 KB. Without TLS the fuzzing sees to it, which
has clients and links end in all ways.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.workers.far_end import FarEnd
from tests.workers.outside import Outside, outside
from tests.workers.wire_client import call
from workers.engine import sockets
from workers.engine.machine import MACHINE
from workers.mesh.messages import LISTEN, SEND, SETTLED

LONG_S: Final = 1000.0
"""Seconds after which nothing is due any more of what has ended."""

OURS: Final = ("workers", "skywalker", "socket", "ssl", "_ssl")

End = Callable[[Outside, FarEnd], None]


def alive() -> Counter[str]:
    """Count what there is of each kind that a worker makes."""
    kinds = Counter(type(each) for each in gc.get_objects())
    counts = {f"{kind.__module__}.{kind.__qualname__}": count for kind, count in kinds.items()}
    return Counter({name: count for name, count in counts.items() if name.partition(".")[0] in OURS})


def left_by(deed: Callable[[], object]) -> Counter[str]:
    """Return what there is more of after a deed than before, while nobody collects what refers to itself."""
    deed()  # what is made once stays
    gc.collect()
    gc.disable()
    try:
        before = alive()
        deed()
        return alive() - before
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def only_what_is_new() -> Iterator[None]:
    """Have what other tests have left, which may be much, be neither looked through nor counted."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have links wait for an answer for longer than a busy machine needs, unless a test says that it is later."""
    monkeypatch.setattr("workers.nodes.outbound_peer.ATTEMPT_S", 60.0)
    monkeypatch.setattr("workers.nodes.probe.ANSWER_S", 60.0)


def test_that_it_would_be_seen() -> None:
    def deed() -> None:
        circle: list[object] = [*sockets.link(MACHINE)]
        circle.append(circle)
        for sock in circle[:2]:
            sock.close()

    assert left_by(deed) == {"socket.socket": 2}


def leaves(outside: Outside, far: FarEnd) -> None:
    far.close()


def breaks(outside: Outside, far: FarEnd) -> None:
    far.reset()


def says_half_of_it(outside: Outside, far: FarEnd) -> None:
    far.say(b"\x01\x40\x94")
    outside.turn(later=11)


def talks_rubbish(outside: Outside, far: FarEnd) -> None:
    far.say(b"\x00\x01\xc1" * 16)
    outside.turn(later=10)


def is_sent_away(outside: Outside, far: FarEnd) -> None:
    outside.core.stop()


@pytest.mark.parametrize("end", [leaves, breaks, says_half_of_it, talks_rubbish, is_sent_away])
def test_a_connection(tmp_path: Path, end: End) -> None:
    with outside(tmp_path) as world:

        def deed() -> None:
            far = world.client()
            far.say(call(":hello", 1, {}) + call(":recv!", 2, 600_000, "a"))
            assert far.reply()[1] == 1
            end(world, far)
            world.turn()
            far.close()
            world.until(lambda: not world.core.connections)
            world.turn(later=LONG_S)

        assert left_by(deed) == {}


def is_over(outside: Outside, far: FarEnd) -> None:
    outside.core.peers.stop()


@pytest.mark.parametrize("end", [leaves, breaks, is_over])
@pytest.mark.parametrize("asks", [True, False], ids=["we are asked", "we ask"])
def test_a_link(tmp_path: Path, end: End, asks: bool) -> None:
    with outside(tmp_path) as world, world.inside() as client:

        def deed() -> None:
            if asks:
                far = world.guest()
                far.tell(LISTEN, 1, 0.0, "a", None)
            else:
                world.dial()
                client.call(":send!", "a", 600_000, "a", "value")
                far = world.owner()
                assert {far.told()[0], far.told()[0]} == {SETTLED, SEND}
            world.turn()
            end(world, far)
            world.turn()
            world.refuse()
            far.close()
            world.alone()
            world.until(lambda: not world.core.peers.inbound)
            client.call(":cancel", "b", "a")
            world.turn()
            world.turn(later=LONG_S)
            world.alone()
            while client.has_input():
                client.reply()

        assert left_by(deed) == {}
