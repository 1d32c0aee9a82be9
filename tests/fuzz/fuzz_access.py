"""Clients at a worker that lets in only whom it knows, and those only where they may.

Two of them are strangers until they say a token: that of somebody who may send to "a" and to what begins with "a/",
receive from "b", and subscribe to "c"; they cannot guess any other. A third one, who may do everything, has a value
that waits on another topic, and listens to one. Whatever the two say: nobody but that one ever has its value, and
nobody gives it another. Who has not said the token hears that it is wanted, or that the time is over, and nothing else,
and is soon turned away.
Each frame is answered once. Once all are gone, nothing is held. The worker finds no mistake of its own.
"""

from __future__ import annotations

from typing import Any

import msgpack

from skywalker.access import token
from skywalker.access.access import Access
from skywalker.access.trust import Trust
from skywalker.limits import Limits
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.fuzz.answers import check_answers
from tests.fuzz.memory import Worker
from tests.fuzz.talks import DAY_S, IMPATIENT, Client, Talk
from tests.wire.streams import framed
from workers.doors.junction.client import REST_S, JunctionClient

TOKEN = "skw_" + 43 * "t"
ANOTHER = "skw_" + 43 * "Q"
NODES = "skw_" + 43 * "N"
ACCESS = Access.parse(
    {
        "web": {
            "token": token.hash_of(TOKEN),
            "send": ["a", "a/*"],
            "recv": ["b"],
            "subscribe": ["c"],
            "rate": 20,
            "in_flight": 5,
            "connections": 1,
        },
        "nodes": {"token": token.hash_of(NODES), "node": True},
        "all": {"token": token.hash_of(ANOTHER)} | {action: ["*"] for action in ("send", "recv", "subscribe")},
    },
    "access",
)
TRUST = Trust(ACCESS, NODES)
SECRET = values.pack("Qz7secretX")
WHERE, INBOX = values.pack("safe"), values.pack("inbox")
WHO = (wire.HELLO, wire.CHALLENGE, wire.PROOF, wire.PEER)
REFUSALS = ("unauthorized", "bad-frame", "bad-id", "busy", "unknown-method")


def check_input(data: bytes) -> object:
    """Hold the invariant for what the two strangers do."""
    return [play(data, cut=cut) for cut in (False, True)]


def play(data: bytes, *, cut: bool) -> object:
    """Return what each client has heard."""
    talk = Guarded(data, cut=cut)
    owner = talk.come(JunctionClient, framed)
    talk.clients.remove(owner)
    owner.say(wire.frame(wire.HELLO, b"\0", values.pack({"token": ANOTHER})), 0)
    owner.say(wire.frame(wire.SEND, b"\1", values.pack(int(DAY_S * 1000)), WHERE, SECRET), 0)
    owner.say(wire.frame(wire.RECV, b"\2", values.pack(int(DAY_S * 1000)), INBOX), 0)
    talk.go()
    strangers = [talk.come(JunctionClient, framed) for _ in range(2)]
    talk.run()
    talk.calm([3.0])
    for stranger in strangers:
        check_heard(stranger)
    if talk.limits != IMPATIENT and talk.elapsed_s < DAY_S:
        assert methods_heard(owner) == [wire.HELLO], "its calls wait as before"
        owner.say(wire.frame(wire.RECV, b"\3", values.pack(0), WHERE), 0)
        talk.go()
        assert [wire.RECV, b"\3", SECRET] in split(bytes(owner.socket.heard))[0]
    talk.calm()
    talk.go_on_after_rests()
    for stranger in strangers:
        check_answers(stranger)
    talk.leave()
    return [bytes(client.socket.heard) for client in strangers]


def methods_heard(client: Client) -> list[bytes]:
    """Return to what a client has answers."""
    return [frame[0] for frame in split(bytes(client.socket.heard))[0]]


class Guarded(Talk):
    """One worker, which lets in only whom it knows."""

    def make(self, limits: Limits) -> Worker:
        return Worker(limits, access=ACCESS, trust=TRUST)

    def go_on_after_rests(self) -> None:
        """Have those answered, too, who ask more than they may, and are not read for a while again and again."""
        before = -1
        while before < (heard := sum(len(client.socket.heard) for client in self.clients)):
            before = heard
            self.go(2 * REST_S)


def check_heard(client: Client) -> None:
    """See that a client has heard no more than it may."""
    heard = bytes(client.socket.heard)
    assert SECRET[1:] not in heard
    assert NODES.encode() not in heard or NODES.encode() in bytes(client.sent), "it hears its own words at most"
    if any(known.encode() in bytes(client.sent) for known in (TOKEN, NODES)):
        return
    assert client.socket.closed or client.socket.shut, "it has had its time"
    named = {frame[3] for frame in split(bytes(client.sent))[0] if isinstance(frame, list) and len(frame) > 4}
    for frame in split(heard)[0]:
        if frame[0] in (wire.SEND, wire.RECV) and frame[2] in {wire.TIMED_OUT, *named}:
            continue  # as who never said :hello hears of a refusal
        result: Any = values.unpack(frame[2])
        if frame[0] == wire.CHALLENGE and isinstance(result, dict):
            continue  # which is for everybody who knows by what name the secret goes, and tells nothing
        assert isinstance(result, msgpack.ExtType)
        refusal = wire.refusal(result)
        assert refusal is not None
        # By these somebody says who they are, so they are read as they are from anybody.
        assert frame[0] in WHO or refusal.code in REFUSALS, refusal.code
