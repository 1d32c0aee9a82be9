"""One attempt to connect to a worker of another node.

    dial, from a source port that steers to the worker; shake hands by TLS, if our node speaks it
      -> [":challenge", id, {...}]  <- [":challenge", id, {...}]  -> [":proof", id, ...], as access/trust.py has it
      -> [":peer", id, {"from": our node, "by": our worker, "life": its text, "node": its node,
                       "worker": its worker, "version": 2,
                       "waits": whether we are new and wait for what it subscribes to,
                       "replaced": whether we have a successor, "age": our seconds of life,
                       "both": true, as we can be asked over this link, too, "round_trip": its seconds}]
      <- [":proof", id, true]
      <- [":peer", id, {"node": its node, "worker": the one that was met, "life": its text, "age": its seconds of life,
                       "waits": whether that is new, "both": whether it asks over this link, too; and where it does,
                       "crossed": whether it is making, or has made, one to us, so that this is none,
                       "replaced": whether it has a successor, which is to be asked}]

Nothing else is said before the other end has proved that it is the node that is wanted.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Final, NamedTuple, Protocol

from skywalker.access.proof import NONCE, NotProven
from skywalker.access.trust import Introduction, farewell
from skywalker.dialling import begin, bind_to_steer, cause_of, is_connected, server_name
from skywalker.discovery.roster import NOT_LET_IN, NOT_PROVEN
from skywalker.errors import Forbidden, Unauthorized
from skywalker.members import Member, Place
from skywalker.tls.records import Records
from skywalker.tls.words import CLOSED
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split
from workers.calls.newcomer import seconds_of
from workers.calls.own_node import VERSION
from workers.engine import sockets
from workers.engine.life import Life
from workers.engine.loop import READ, WRITE
from workers.engine.secure_socket import SecureSocket
from workers.engine.transport import PlainSocket, Transport
from workers.nodes.context import PeerContext

MAX_ANSWER: Final = 4096

_ID: Final = values.pack(0)

DIALLING, SHAKING_HANDS, PROVING, ASKING, OVER = range(5)

CONNECTED, SECURED, PROVED, ENDED = range(4)

ATTEMPT: Final = Life(
    "dialled connection",
    states=[
        ("dialling", "The kernel makes a connection."),
        ("shaking hands", "TLS is agreed on, where the node speaks it."),
        ("proving", "The other end has to prove that it is the node that is wanted, where a proof is wanted."),
        ("asking", "It has been told who asks, and has to say which worker it is."),
        ("over", "The connection is a link, or closed."),
    ],
    events=[
        ("connected", "There is a connection, over which TLS is still to be spoken."),
        ("secured", "What is said is heard by the other end alone; or nobody wanted TLS."),
        ("proved", "It has proved itself; or nobody wanted a proof."),
        ("ended", "It has come to the worker that was wanted, or to nothing."),
    ],
    ways={
        DIALLING: {CONNECTED: SHAKING_HANDS, SECURED: PROVING, ENDED: OVER},
        SHAKING_HANDS: {SECURED: PROVING, ENDED: OVER},
        PROVING: {PROVED: ASKING, ENDED: OVER},
        ASKING: {ENDED: OVER},
    },
)


class Met(NamedTuple):
    """What the worker that was wanted says of itself, and of us."""

    life: str
    waits: bool
    """Whether it is new, and waits for us to say what we subscribe to."""
    counts_us: bool
    """Whether our node is on its ring: if not, it does not say what it subscribes to."""
    both_ways: bool
    """Whether it asks us over this link, too, and makes no other."""
    age_s: float


class Dialler(Protocol):
    """Who makes the attempt, and is told once how it ends, unless that ends it."""

    def opened(self, sock: Transport, met: Met, round_trip_s: float, heard: bytes) -> None:
        """The worker that was wanted has this connection, and has said `heard` over it already."""

    def strayed(self) -> None:
        """Another worker of that node was met."""

    def crossed(self, life: str) -> None:
        """The worker that was wanted, of that life, makes a link to us, or thinks that there is one."""

    def not_relayed(self) -> None:
        """No sibling leads to the worker that was wanted."""

    def failed(self, reason: str) -> None:
        """Nothing has come of it."""


class Attempt:
    """One of them, to the worker in `place` of `member`."""

    __slots__ = (
        "_asked_at", "_by", "_dialled_at", "_dialler", "_heard", "_introduction", "_member", "_place", "_round_trip_s",
        "_secure", "_sock", "_state", "_transport",
    )  # fmt: skip

    def __init__(self, place: Place, member: Member, by: PeerContext, dialler: Dialler) -> None:
        self._place = place
        self._member = member
        self._by = by
        self._dialler = dialler
        self._state = DIALLING
        self._sock: socket.socket | None = None
        self._secure: SecureSocket | None = None  # that with TLS around it
        self._transport: Transport | None = None  # whichever of both is spoken over, once that is possible
        self._introduction: Introduction | None = None  # from then on
        self._heard = b""  # the answer that has begun
        self._dialled_at = self._asked_at = self._round_trip_s = 0.0

    def _becomes(self, event: int) -> None:
        self._state = ATTEMPT.after(self._state, event)

    def begin(self) -> None:
        """Dial."""
        address = self._member.address
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            self._sock = sock = self._by.machine.tcp(family)
            self._by.loop.add(sock.fileno(), self, WRITE)
            sockets.tune(sock)
            if self._member.steering:
                bind_to_steer(sock, self._place.worker, self._member.workers, self._by.machine.random)
            self._dialled_at = self._by.turn.now
            begin(sock, (address.host, address.port))
        except OSError as error:
            self._dialler.failed(cause_of(error))

    def end(self) -> None:
        """Give it up; nobody is told."""
        self._becomes(ENDED)
        ours = self._transport or self._secure or self._sock
        if ours is not None:
            self._by.loop.remove(ours.fileno())
            ours.close()

    @property
    def is_asking(self) -> bool:
        """Whether the other end has been told who asks, and may have made a link of this."""
        return self._state == ASKING

    @property
    def is_shaking_hands(self) -> bool:
        """Whether there is a connection, and TLS is still being agreed on."""
        return self._state == SHAKING_HANDS

    def ready(self, events: int) -> None:
        """Go on: the socket says that it can."""
        try:
            if self._transport is not None:
                self._hear(self._transport)
            elif self._secure is not None:
                self._shake_hands(self._secure)
            elif self._sock is not None and is_connected(self._sock):
                self._connected(self._sock)
        except BlockingIOError:
            pass  # nothing has come yet
        except OSError as error:
            self._dialler.failed(cause_of(error))
        except NotProven as error:
            if self._transport is not None:
                with contextlib.suppress(OSError):  # it hears why, if it is there to hear it
                    self._transport.send(farewell(_ID, error))
            self._dialler.failed(f"{NOT_PROVEN}: {error}")
        except ValueError as error:
            self._dialler.failed(str(error))

    def _connected(self, sock: socket.socket) -> None:
        self._round_trip_s = self._by.turn.now - self._dialled_at
        self._by.loop.change(sock.fileno(), READ)
        credentials = self._by.credentials
        if credentials is None:
            self._introduce(PlainSocket(sock))
            return
        self._becomes(CONNECTED)
        name = server_name(self._member.address.host)
        self._secure = SecureSocket(sock, Records(credentials.client(), server_hostname=name))
        self._secure.hello()

    def _shake_hands(self, secure: SecureSocket) -> None:
        try:
            is_done = secure.shake_hands()
        except ConnectionError as error:
            raise ValueError(CLOSED) from error
        if is_done:
            self._introduce(secure)

    def _introduce(self, transport: Transport) -> None:
        self._becomes(SECURED)
        self._transport = transport
        by, wanted = self._by, self._place.node
        self._introduction = Introduction(
            by.trust,
            by.node.id,
            by.node.address,
            self._member.address,
            transport.names(),
            by.machine.nonce(NONCE),
            wanted,
        )
        transport.send(self._introduction.begin(_ID) or self._question())

    def _question(self) -> bytes:
        assert self._introduction is not None, "there is a connection"
        self._becomes(PROVED)
        self._asked_at = self._by.turn.now
        token = self._introduction.token
        asked = {**question(self._by, self._place, self._round_trip_s), **({"token": token} if token else {})}
        return wire.frame(wire.PEER, _ID, values.pack(asked))

    def _hear(self, transport: Transport) -> None:
        data = transport.recv(MAX_ANSWER)
        if not data:
            raise ValueError("it closed the connection")
        heard = self._heard + data
        # One frame at a time: what comes after the last one is for the link.
        while self._state != OVER and len(heard) >= 2 and len(heard) >= (end := 2 + int.from_bytes(heard[:2], "big")):
            [frame], _ = split(heard[:end])
            heard = heard[end:]
            if len(frame) != 3 or isinstance(frame, BadFrame):
                raise ValueError("it does not speak as a node does")
            self._answered(transport, frame, heard)
        self._heard = heard

    def _answered(self, transport: Transport, frame: list[bytes], rest: bytes) -> None:
        assert self._introduction is not None, "it was asked something"
        method, answer = frame[0], values.unpack(frame[2], text_keys=True)
        if method == wire.PROOF and self._state == ASKING and answer is True:
            return  # it takes our proof, and still has to answer
        awaited = wire.CHALLENGE if self._state == PROVING else wire.PEER
        if method != awaited and wire.refusal(answer) is not None:
            raise ValueError(_refusal(answer))
        if self._state == PROVING:
            if method != wire.CHALLENGE:
                raise NotProven("its answer to a challenge is none")
            transport.send(self._introduction.heard(_ID, answer) + self._question())
        elif method == wire.PEER:
            self._met(transport, answer, rest)
        else:
            raise ValueError(_refusal(answer))

    def _met(self, transport: Transport, answer: Any, rest: bytes) -> None:
        met = meet(answer, self._place, self._dialler)
        if met is not None:
            self._becomes(ENDED)
            self._by.loop.remove(transport.fileno())
            self._dialler.opened(transport, met, self._by.turn.now - self._asked_at, rest)


def question(by: PeerContext, place: Place, round_trip_s: float) -> dict[str, Any]:
    """Return what is said to who is taken for the worker in a place: who asks, and whom it wants."""
    node = by.node
    return {
        "from": node.id,
        "node": place.node,
        "worker": place.worker,
        "by": node.slot,
        "life": node.life,
        "version": VERSION,
        "waits": by.standing.opening,
        "replaced": by.standing.replaced,
        "age": by.turn.now - node.born,
        "both": True,
        "round_trip": round_trip_s,
    }


def meet(answer: Any, place: Place, dialler: Dialler) -> Met | None:
    """Return what that one says, if it is who is wanted, and lets a link be made; else its dialler is told, and None.

    Raises ValueError if it does not answer as a node does.
    """
    match answer:
        case {"node": str(node), "worker": int(worker)}:
            if node != place.node:
                raise ValueError(f"node {node} answers there")
            both_ways = answer.get("both") is True
            if worker != place.worker or (both_ways and answer.get("replaced") is True):
                dialler.strayed()
                return None
            if both_ways and answer.get("crossed") is True:
                dialler.crossed(str(answer.get("life", "")))
                return None
            counts_us = answer.get("counts") is not False
            age_s = seconds_of(answer.get("age"))
            return Met(str(answer.get("life", "")), answer.get("waits") is True, counts_us, both_ways, age_s)
        case _:
            raise ValueError(_refusal(answer))


def _refusal(answer: Any) -> str:
    """Return in words why the other end does not go on."""
    refused = wire.refusal(answer)
    if isinstance(refused, Unauthorized | Forbidden):
        return f"{NOT_LET_IN}: it said: {refused}"
    return f"it does not speak as a node does: {refused or answer!r:.100}"
