"""The link to a worker of another node, whose other end may be anything: one that asks us, or one that we ask.

Whatever comes over it, the worker lives: it closes the link, or goes on. Its own clients have an answer to each of
their calls, and only one, as if nothing were; and two that meet afterwards do. Once all are gone, nothing is held. The
worker finds no mistake of its own.

The lowest bits of an input's first byte say who the other end is, whether it says first who it is, as it should,
whether our worker is new and waits to hear what others subscribe to, and whether nodes have to prove who they are: then
the other end, which cannot, hears nothing of any call.
"""

from __future__ import annotations

from typing import Any

from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member, Snapshot
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.fuzz.answers import check_answers
from tests.fuzz.memory import Worker
from tests.fuzz.talks import Client, Talk
from tests.wire.streams import framed
from workers.calls.own_node import VERSION
from workers.doors.junction.client import JunctionClient
from workers.doors.junction.methods import METHODS

OURS = Member("id", "name", Address("127.0.0.1", 3443), 1, False, (2**62,))
OTHER = Member("other", "other", Address("127.0.0.1", 3444), 1, False, (-(2**62), 0, 2**61))

CLIENTS = 2
ASKED, SILENT, NEW, PROVES = 1, 2, 4, 8
TRUST = Trust(secret="skw_" + 43 * "M")
RING = Snapshot([OURS, OTHER])
CALM = next(topic for n in range(99) if RING.ring.owner(token_of(topic := values.pack(f"calm {n}"))).node == OURS.id)
"""A topic of our own, where chance brings nobody."""


def check_input(data: bytes) -> object:
    """Hold the invariant for what the other end and two clients do."""
    if not data:
        return None
    whole, pieces = (play(data[0], data[1:], cut=cut) for cut in (False, True))
    return whole, pieces


def message(body: bytes) -> bytes:
    """Return a message of a link."""
    return len(body).to_bytes(4, "big") + body


def play(mode: int, data: bytes, *, cut: bool) -> object:
    """Return what each client has heard."""
    talk = Mesh(data, mode, cut=cut)
    clients = [talk.come(JunctionClient, framed) for _ in range(CLIENTS)]
    talk.meet()
    talk.run()
    talk.calm()
    for client in clients:
        check_answers(client, wire.SUBSCRIBE, wire.UNSUBSCRIBE)
    check_that_two_meet(talk)
    if mode & PROVES:
        frames = split(bytes(talk.node.socket.heard))[0]
        heard = {frame[0] for frame in frames if not wire.is_reserved(frame[-1])}  # an error repeats any method
        assert heard <= ({wire.CHALLENGE, wire.PROOF} if mode & ASKED else {*METHODS, wire.ERROR, wire.RING}), heard
        assert not talk.worker.hub.peers.asking
    talk.leave()
    return [bytes(client.socket.heard) for client in clients]


class Mesh(Talk):
    """One worker, and another node."""

    def __init__(self, data: bytes, mode: int, *, cut: bool) -> None:
        self.mode = mode
        super().__init__(data, cut=cut)

    def make(self, limits: Limits) -> Worker:
        trust = TRUST if self.mode & PROVES else None
        worker = Worker(limits, OURS, trust=trust, opens=not self.mode & NEW, dialled=self.dialled)
        if self.mode & (ASKED | NEW):
            worker.hub.follow(RING)
        return worker

    def meet(self) -> None:
        """Have the other end come, or be where we look for it."""
        self.node = Client(
            self.worker.connect(JunctionClient) if not self.mode & ASKED else self.worker.socket(), message
        )
        if self.mode & ASKED:
            self.node.socket.close()  # until we go there
        elif not self.mode & SILENT:
            question = {"from": "other", "by": 0, "node": "id", "worker": 0, "version": VERSION, "life": "1"}
            self.node.socket.say([wire.frame(wire.PEER, b"\0", values.pack(question))])
        self.clients.append(self.node)
        if self.mode & NEW:
            hub = self.worker.hub
            hub.open(lambda: None)
            hub.barrier.has_all(hub.peers.visit_all())
        self.go()

    def dialled(self) -> Any:
        """We have gone there: return our end of that."""
        made = self.worker.socket()
        if self.mode & ASKED:
            self.node.socket = made
        if self.mode & ASKED and not self.mode & SILENT:
            made.say([wire.frame(wire.PEER, b"\0", values.pack({"node": "other", "worker": 0}))])
        return made


def check_that_two_meet(talk: Mesh) -> None:
    """See that the worker still does what it is for."""
    one, other = (talk.come(JunctionClient, framed) for _ in range(2))
    one.say(wire.frame(wire.SEND, b"\1", values.pack(60_000), CALM, b"\2"), 0)
    other.say(wire.frame(wire.RECV, b"\1", values.pack(60_000), CALM), 0)
    talk.go()
    assert split(bytes(one.socket.heard))[0] == [[wire.SEND, b"\1", wire.TRUE]]
    assert split(bytes(other.socket.heard))[0] == [[wire.RECV, b"\1", b"\2"]]
