"""One worker of another node: the connection that we make to it, once one of us has something to say, and keep.

    dial, from a source port that steers to the worker; shake hands by TLS, if our node speaks it
      -> [":peer", id, {"from": our node, "by": our worker, "life": its text, "node": its node,
                       "worker": its worker, "version": 2, "token": ours, if we have one,
                       "waits": whether we are new and wait for it to make a link to us,
                       "replaced": whether we have a successor}]
      <- [":peer", id, {"node": its node, "worker": the one that was met, "life": its text}]

If that is who was wanted, both go on with messages.py on this connection. If the dial met
another worker, it is made again.
"""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, Any, Final

from skywalker.backoff import delay
from skywalker.dialling import begin, bind_to_steer, cause_of, is_connected, server_name
from skywalker.errors import Forbidden, Unauthorized
from skywalker.members import Member, Place
from skywalker.tls.records import Records
from skywalker.tls.words import CLOSED, SILENT
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split
from workers import sockets
from workers.alarm import Alarm
from workers.calls import GRACE_S
from workers.doubt import Doubt
from workers.link import Link
from workers.loop import READ, WRITE
from workers.messages import VERSION
from workers.owner import Owner
from workers.secure_socket import SecureSocket, Transport
from workers.stream import Stream

if TYPE_CHECKING:
    from workers.router import Router

ATTEMPT_S: Final = 1.0
"""Seconds for a node to accept a connection and say who it is."""

MAX_PAUSE_S: Final = 1.0
"""Seconds between attempts, at most: as soon as it is back it is wanted."""

PARTING_S: Final = 0.3
"""Seconds for one whose successor has come to us to end its link, before another is made beside it."""

LASTING_S: Final = 1.0
"""Seconds that a connection must have lasted to be made anew at once when it is lost."""

DIAL_GRACE_S: Final = 0.1
"""Seconds for a last word of one that is not connected yet: a connection takes three round trips."""

PATIENCE: Final = 8
"""Dials for each of a node's workers that may meet another one than was wanted, before they count as failed."""

MAX_GRACE_S: Final = 0.3
"""Seconds for a last word from far away, at most."""

MAX_ANSWER: Final = 4096


class Peer(Owner):
    """A worker of another node as an owner of topics."""

    __slots__ = (
        "_alarm", "_answer", "_asked_at", "_doubt", "_failures", "_left", "_life", "_link", "_member", "_opened_at",
        "_router", "_socket", "_sought", "_strays", "_was_idle", "owns",
    )  # fmt: skip

    def __init__(self, place: Place, member: Member, router: Router) -> None:
        Owner.__init__(self, place)
        self.absent.grace_s = DIAL_GRACE_S
        self._member = member
        self._router = router
        self._link: Link | None = None
        self._doubt: Doubt | None = None  # about that link, once it owns nothing any more
        self._was_idle = False
        self._socket: Transport | None = None  # while it is being made
        self._answer: bytes | None = None  # to :peer, as far as it is here; None before it is asked
        self._asked_at = 0.0
        self._failures = 0  # in a row, of attempts and of connections that did not last
        self._opened_at = 0.0
        self._strays = 0  # dials in a row that met another worker
        self.owns = True  # some part of the ring
        self._life = ""  # of the one that was met last
        self._sought: str | None = None  # the life of who is to hear what we subscribe to, empty for whoever is there
        self._left: dict[Link, Doubt] = {}  # links to predecessors, until they have said their last
        self._alarm = Alarm()  # limits an attempt, or puts off the next

    def is_at(self, member: Member) -> bool:
        """Whether `member`, of the same id, still is where this one is reached."""
        ours = self._member
        return (ours.address, ours.workers, ours.steering) == (member.address, member.workers, member.steering)

    def wanted(self) -> None:
        if self._socket is None and self._alarm.at is None and self.owns:
            self._dial()

    def visit(self, life: str = "") -> None:
        """Go there, and say what is subscribed to here, to one of that `life`: now, whatever happened before."""
        self._sought = life
        if self._socket is None and self._link is None and self.owns:
            self._alarm.off(self._router.turn)
            self._failures = 0
            self._dial()

    def has_come(self, life: str) -> None:
        """One of that life has come to us, and waits for us to say what we subscribe to."""
        if self._link is not None and life == self._life:
            return  # we have
        if self._link is None:
            self.visit(life)
        else:
            # Our link is to the one before, which says the last of what was published there.
            self._sought = life
            self._alarm.set(self._router.turn, self._router.turn.now + PARTING_S, self._ring)

    def retire(self) -> None:
        """It owns nothing any more: be done with it, once it has let go of what waits there."""
        self.owns = False
        self._drop()
        if self._doubt is not None:
            self._doubt.look()

    @property
    def unsent(self) -> int:
        """Bytes that wait to be written to it."""
        return sum(link.unsent for link in (self._link, *self._left) if link is not None)

    def is_done(self) -> bool:
        """Whether it owns nothing any more, and nothing is left of it."""
        return not self.owns and self._link is None and not self._left

    def stop(self) -> None:
        """Close the connection, after what was written over it."""
        self.owns = False
        self._drop()
        for link in (self._link, *self._left):
            if link is not None:
                link.close("this node ends")

    def _ring(self) -> None:
        if self._socket is not None:
            is_mute = isinstance(self._socket, SecureSocket) and not self._socket.established
            self._failed(SILENT if is_mute else f"no answer within {ATTEMPT_S:g} s")
        elif self._link is not None:
            self._leave(self._link)
        elif len(self.absent) or self._sought is not None:
            self._dial()

    def _leave(self, link: Link) -> None:
        """Make another link beside one to a predecessor, which ends once all that it gave us is decided."""
        assert self._doubt is not None, "there is one of each link"
        self._doubt.end()
        self._left[link] = doubt = Doubt(link, self._router, lambda: True)
        doubt.look()
        self._link = self._doubt = None
        self.lost(link.forwarded)
        for feed in self._router.feeds.all():
            feed.handed_over(link.forwarded)
        self.visit(self._sought or "")
        self._router.move.begin()

    # Making the connection.

    def _dial(self) -> None:
        address, turn = self._member.address, self._router.turn
        self._answer = None
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            self._socket = sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            self._router.loop.add(sock.fileno(), self, WRITE)
            sockets.tune(sock)
            if self._member.steering:
                bind_to_steer(sock, self.place.worker, self._member.workers)
            begin(sock, (address.host, address.port))
        except OSError as error:
            self._failed(cause_of(error))
            return
        self._alarm.set(turn, turn.now + ATTEMPT_S, self._ring)

    def ready(self, events: int) -> None:
        """Go on with the attempt."""
        sock = self._socket
        assert sock is not None
        try:
            if self._answer is not None:
                self._hear(sock)
            elif isinstance(sock, SecureSocket):
                self._shake_hands(sock)
            elif is_connected(sock):
                self._begin(sock)
        except BlockingIOError:
            pass  # nothing has come yet
        except OSError as error:
            self._failed(cause_of(error))
        except ValueError as error:
            self._failed(str(error))

    def _begin(self, sock: socket.socket) -> None:
        self._router.loop.change(sock.fileno(), READ)
        credentials = self._router.credentials
        if credentials is None:
            self._ask(sock)
            return
        name = server_name(self._member.address.host)
        self._socket = secure = SecureSocket(sock, Records(credentials.client(), server_hostname=name))
        secure.hello()

    def _shake_hands(self, sock: SecureSocket) -> None:
        try:
            is_done = sock.shake_hands()
        except ConnectionError as error:
            raise ValueError(CLOSED) from error
        if is_done:
            self._ask(sock)

    def _ask(self, sock: Transport) -> None:
        node, token = self._router.node, self._router.peers.token
        question = {
            "from": node.id,
            "node": self.place.node,
            "worker": self.place.worker,
            "by": node.slot,
            "life": node.life,
            "version": VERSION,
            "waits": self._router.opening is not None,
            "replaced": self._router.replaced,
            **({"token": token} if token else {}),
        }
        sock.send(wire.frame(wire.PEER, values.pack(0), values.pack(question)))
        self._answer = b""
        self._asked_at = self._router.turn.now

    def _hear(self, sock: Transport) -> None:
        assert self._answer is not None
        data = sock.recv(MAX_ANSWER)
        if not data:
            raise ValueError("it closed the connection")
        heard = self._answer + data
        end = 2 + int.from_bytes(heard[:2], "big")
        frames, self._answer = split(heard[:end])
        if not frames:
            return
        if len(frames[0]) != 3 or isinstance(frames[0], BadFrame):
            raise ValueError("it does not speak as a node does")
        answer = values.unpack(frames[0][2], text_keys=True)
        match answer:
            case {"node": str(node), "worker": int(worker)}:
                if node != self.place.node:
                    raise ValueError(f"node {node} answers there")
                if worker == self.place.worker:
                    self._life = str(answer.get("life", ""))
                    self._open(sock, heard[end:])
                else:
                    self._stray()
            case _:
                raise ValueError(_refusal(answer))

    def _stray(self) -> None:
        self._strays += 1
        if self._strays % (PATIENCE * self._member.workers) == 0:
            raise ValueError("its other workers answer, this one does not")
        self._drop()
        self._dial()

    def _open(self, sock: Transport, heard: bytes) -> None:
        """Go on as a link; `heard` is what the other end has said over it already."""
        router = self._router
        router.loop.remove(sock.fileno())
        self._alarm.off(router.turn)
        self._socket = None
        self._strays = 0
        self._opened_at = router.turn.now
        messages = Stream(sock, router.limits.mesh_bytes, router.turn, heard=heard)
        self._link = link = Link(messages, router, self, self._ended)
        link.forwarded.grace_s = min(MAX_GRACE_S, GRACE_S + router.turn.now - self._asked_at)
        self._doubt = Doubt(link, router, self._is_needed)
        link.open()
        self.met(link.forwarded)
        if self._sought in ("", self._life):
            self._sought = None
        if heard:
            link.ready(READ)

    def _is_needed(self) -> bool:
        """Whether one that owns nothing any more still has to say something; if not, its link is done with."""
        if not self.owns and self._link is not None and self._link.forwarded.is_idle() and self._was_idle:
            self._link.close("it owns nothing any more")
            return False
        self._was_idle = self._link is not None and self._link.forwarded.is_idle()  # what was said last is on its way
        return not self.owns

    def _drop(self) -> None:
        self._alarm.off(self._router.turn)
        if self._socket is not None:
            self._router.loop.remove(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _failed(self, reason: str) -> None:
        router = self._router
        self._drop()
        if self._failures == 0:
            router.log.warning("peer-unreachable", peer=str(self._member), its_worker=self.place.worker, reason=reason)
        self._failures += 1
        pause_s = delay(self._failures, random.random(), cap_s=MAX_PAUSE_S)
        self._alarm.set(router.turn, router.turn.now + pause_s, self._ring)

    # The end.

    def _ended(self, link: Link, reason: str) -> None:
        router = self._router
        left = self._left.pop(link, None)
        if left is not None:
            left.end()
            return
        self._link = None
        if self._doubt is not None:
            self._doubt.end()
            self._doubt = None
        self.lost(link.forwarded)
        if not self.owns:
            return
        self._alarm.off(router.turn)
        router.log.warning("peer-lost", peer=str(self._member), its_worker=self.place.worker, reason=reason)
        if self._sought is not None:
            self.visit()
        elif router.turn.now - self._opened_at >= LASTING_S:
            self._failures = 0
        else:
            self._failed(reason)


def _refusal(answer: Any) -> str:
    """Return in words why the other end does not go on."""
    refused = wire.refusal(answer)
    if isinstance(refused, Unauthorized | Forbidden):
        return f"it does not let this node in: it said: {refused}"
    return f"it does not speak as a node does: {refused or answer!r:.100}"
