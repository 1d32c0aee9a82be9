"""Good calls are done without Python: whoever owns the core is asked nothing, and told but the topics of some calls."""

from __future__ import annotations

import socket
from typing import Any, Final

from skywalker.wire import junction as wire
from skywalker.wire import pubsub
from skywalker.wire.frames import Frame, split
from skywalker.wire.values import pack
from tests.workers.turns import turn_of
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient
from workers.engine.machine import MACHINE

TOPIC: Final = pack("topic")
PATIENT: Final = pack(60_000)
AT_ONCE: Final = pack(0)
SOON: Final = pack(20)
VALUE: Final = pack("value")


def connected(core: Any, door: int = JunctionClient.door) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    return core.connect(ours.detach(), door), theirs


def heard(client: socket.socket) -> list[Frame]:
    frames, rest = split(client.recv(10_000))
    assert not rest
    return sorted(frames)


def test_good_calls_of_both_dialects_are_done_without_python() -> None:
    core: Any = turn_of(MACHINE).core
    core.rare = core.linking = object()  # it has nothing that could be asked
    core.tell_next(1000)
    taker, taking = connected(core)
    sender, sending = connected(core)
    _, publishing = connected(core, PubSubClient.door)
    core.greeted(taker, True, 1000)
    taking.send(
        wire.frame(wire.RECV, pack(1), PATIENT, TOPIC)
        + wire.frame(wire.TAKE, pack(2), PATIENT, TOPIC, pack("group"))
        + wire.frame(wire.RECV, pack(3), AT_ONCE, pack("nobody is here"))
        + wire.frame(wire.RECV, pack(4), SOON, pack("nor here"))
        + wire.frame(wire.CANCEL, pack(5), pack(99))
    )
    core.turn(0.0)
    assert heard(taking) == [[wire.RECV, pack(3), wire.TIMED_OUT], [wire.CANCEL, pack(5), wire.FALSE]]
    sending.send(wire.frame(wire.SEND, pack(1), PATIENT, TOPIC, VALUE))
    core.turn(0.0)
    assert heard(taking) == [[wire.RECV, pack(1), VALUE], [wire.TAKE, pack(2), VALUE]]
    taking.send(wire.frame(wire.ACK, pack(2)) + wire.frame(wire.ACK, pack(1)))
    core.turn(0.0)
    assert heard(sending) == [[wire.SEND, pack(1), wire.TRUE]]
    while not core.turn(1.0) and core.held()[0]:
        pass
    assert heard(taking) == [[wire.RECV, pack(4), wire.TIMED_OUT]]
    subscription, _ = core.subscribe(sender, pack(7), TOPIC)
    core.stand(subscription)
    publishing.send(pubsub.publish(b"topic", b"value"))
    core.turn(0.0)
    assert heard(sending) == [[wire.MESSAGE, pack(7), pack(b"value")]]
    assert publishing.recv(10) == pubsub.ACKED
    core.end(subscription)
    for client in (taking, sending, publishing):
        client.close()
