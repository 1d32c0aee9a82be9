"""What has ended is gone at once, by reference counting alone: a worker has nothing looked for by the collector.

What still referred to itself would stay, with all that it holds: a connection by TLS some 60 KB.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from skywalker.limits import KIB, MIB, Limits
from tests.workers.far_end import FarEnd
from tests.workers.outside import Outside, outside
from tests.workers.pubsub_client import publish, subscribe
from tests.workers.turns import life
from tests.workers.wire_client import WireClient, call
from workers.doors.junction.dialogue import Dialogue
from workers.doors.pubsub import PubSub
from workers.engine import sockets
from workers.engine.machine import MACHINE
from workers.mesh.messages import CENSUS, GIVE, LISTEN, OFFER, PUBLISH, SEND, SETTLED, SUBSCRIBE, SUBSCRIBED

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


@pytest.fixture(params=["plain", "tls"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where certificates can be, for those that speak TLS."""
    return tmp_path if request.param == "tls" else None


def test_that_it_would_be_seen() -> None:
    def deed() -> None:
        circle: list[object] = [*sockets.link(MACHINE)]
        circle.append(circle)
        for sock in circle[:2]:
            sock.close()

    assert left_by(deed) == {"socket.socket": 2}


# A client's connection.


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
@pytest.mark.parametrize("door", ["junction", "unix", "pubsub"])
def test_a_connection(directory: Path | None, door: str, end: End) -> None:
    with outside(directory) as world:
        listener = world.door(PubSub if door == "pubsub" else Dialogue, unix=door == "unix")

        def deed() -> None:
            far = world.client(listener)
            if door == "pubsub":
                far.say(subscribe(b"a") + subscribe(b"b") + publish(b"b", b"value") + publish(b"c", b"value"))
                far.hear(4)
            else:
                far.say(call(":hello", 1, {"ack": True}))
                far.say(call(":recv!", 2, 600_000, "a") + call(":send!", 3, 600_000, "b", "value"))
                far.say(call(":subscribe", 4, "c") + call(":send!", 5, 600_000, "a", "value"))
                assert {far.reply()[1] for _ in range(3)} == {1, 2, 4}
            end(world, far)
            world.turn()
            far.close()
            world.until(lambda: not world.core.connections)
            world.turn(later=LONG_S)

        assert left_by(deed) == {}


@pytest.mark.parametrize("end", ["reads", "leaves", "never reads", "is cut off"])
@pytest.mark.parametrize("door", ["junction", "pubsub"])
def test_a_client_that_does_not_read(directory: Path | None, door: str, end: str) -> None:
    buffer = 64 * KIB if end == "is cut off" else 64 * MIB
    with outside(directory, Limits(subscriber_buffer=buffer)) as world:
        listener = world.door(PubSub if door == "pubsub" else Dialogue)
        value = b"v" * 60_000

        def deed() -> None:
            far, other = world.client(listener), world.client(listener)
            if door == "pubsub":
                far.say(subscribe(b"a"))
                far.hear(1)
            else:
                far.say(call(":subscribe", 1, "a"))
                far.reply()
            for number in range(150):
                other.say(publish(b"a", value) if door == "pubsub" else call(":send!", number, 600_000, "a", value))
            world.until(
                lambda: (len(world.core.connections) == 1) if end == "is cut off" else world.core.connections.choked
            )
            while end == "reads" and world.core.connections.choked:
                far.hear(60_000)
            if end == "never reads":
                later = 0
                while world.core.connections.choked:  # the kernel may take some more
                    later += 31
                    world.turn(later)
            far.close()
            if door == "pubsub":
                other.say(publish(b"a", b"last") + publish(b"b", b""))  # the last one is remembered
            other.close()
            world.until(lambda: not world.core.connections, later=LONG_S)

        assert left_by(deed) == {}


# A link over which we are asked.


def talks_nonsense(outside: Outside, far: FarEnd) -> None:
    far.tell(SEND, 9)


def does_not_answer(outside: Outside, far: FarEnd) -> None:
    outside.turn(later=61)


def does_not_read(outside: Outside, far: FarEnd) -> None:
    with outside.inside() as client:
        for number in range(10, 100):
            far.tell(LISTEN, number, 0.0, "unread", None)
            client.call(":send!", number, 600_000, "unread", "v" * 60_000)
            outside.turn()
    outside.until(lambda: not outside.core.peers.inbound, later=61)


def is_over(outside: Outside, far: FarEnd) -> None:
    outside.core.peers.stop()


def call_off(world: Outside, client: WireClient, *ids: str) -> None:
    """Have nothing be left of what a client that stays has asked, and of what was due."""
    for id in ids:
        client.call(":cancel", f"no {id}", id)
        client.call(":unsubscribe", f"no more {id}", id)
    world.turn()
    world.turn(later=LONG_S)
    while client.has_input():
        client.reply()


@pytest.mark.parametrize(
    "end",
    [leaves, breaks, talks_nonsense, does_not_answer, does_not_read, is_over],
)
def test_a_link_over_which_we_are_asked(directory: Path | None, end: End) -> None:
    with outside(directory, Limits(mesh_bytes=64 * KIB)) as world, world.inside() as client:

        def deed() -> None:
            far = world.guest()
            far.tell(LISTEN, 1, 0.0, "a", None)
            far.tell(LISTEN, 2, 0.0, "b", None)
            far.tell(SEND, 3, 0.0, "c", "value")
            far.tell(SUBSCRIBE, "d", 1)
            far.tell(CENSUS, 4, "a")
            for topic in "ad":  # what becomes of these is never said
                client.call(":send!", topic, 600_000, topic, "value")
            world.turn()
            end(world, far)
            world.until(lambda: not world.core.peers.inbound)
            far.close()
            call_off(world, client, "a", "d")

        assert left_by(deed) == {}


# A link over which we ask.


def is_killed(outside: Outside, far: FarEnd) -> None:
    outside.refuse()
    far.close()
    for number in range(1, 6):  # it is dialled again and again
        outside.turn(later=61 * number)


def leaves_the_ring(outside: Outside, far: FarEnd) -> None:
    outside.alone()
    for number in range(1, 4):
        outside.turn(later=61 * number)


@pytest.mark.parametrize("end", [leaves, breaks, talks_nonsense, is_over, is_killed, leaves_the_ring])
def test_a_link_over_which_we_ask(directory: Path | None, end: End) -> None:
    with outside(directory) as world, world.inside() as client:

        def deed() -> None:
            world.dial()
            client.call(":send!", "a", 600_000, "a", "value")
            far = world.owner()
            client.call(":recv!", "b", 600_000, "b")
            client.call(":subscribe", "c", "c")
            client.call(":topic", "d", "d")
            kinds = []
            for _ in range(5):
                kind, number, *_ = far.told()
                kinds.append(kind)
                if kind == LISTEN:
                    far.tell(GIVE, number, "value")
                elif kind == SUBSCRIBE:
                    far.tell(SUBSCRIBED, "c")
                    far.tell(OFFER, "c", 1, "value", None)
            assert sorted(kinds) == [SEND, LISTEN, SUBSCRIBE, CENSUS, SETTLED]
            end(world, far)
            world.turn()
            world.refuse()
            far.close()
            world.alone()
            call_off(world, client, "a", "b", "c")
            world.alone()

        assert left_by(deed) == {}


# A link to another worker of this node.


@pytest.mark.parametrize("said", ["nothing", "something"])
def test_a_link_to_a_sibling(said: str) -> None:
    with outside(None) as world, world.inside() as client:

        def deed() -> None:
            ours, theirs = sockets.link(MACHINE)
            world.core.siblings.serve(theirs, life())
            far = FarEnd(ours, world.turn, None)
            if said == "something":
                far.tell(LISTEN, 1, 0.0, "a", None)
                far.tell(SUBSCRIBE, "d", 1)
                far.tell(PUBLISH, 2, "d", b"value", None)
                for topic in "ad":
                    client.call(":send!", topic, 600_000, topic, "value")
                world.turn()
            far.close()
            world.until(lambda: not world.core.siblings.all())
            call_off(world, client, "a", "d")

        assert left_by(deed) == {}
