"""One connection of the agent to a node: dials, has both prove themselves, greets, pings, and reports to Roster.

Whatever the other side sends, it costs no more than this connection.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from skywalker.access.proof import NONCE, Elsewhere, NotProven
from skywalker.access.trust import Introduction, Trust, farewell
from skywalker.address import Address
from skywalker.dialling import cause_of, server_name
from skywalker.discovery.contact import Greeting
from skywalker.discovery.roster import (
    ELSEWHERE,
    MAX_CONTACTS,
    NO_TLS,
    NOBODY,
    NOT_LET_IN,
    NOT_PROVEN,
    Roster,
)
from skywalker.errors import BadArity, BadFrame, ConfigError, Forbidden, RequestError, Unauthorized, UnknownMethod
from skywalker.limits import KIB
from skywalker.members import Member
from skywalker.tls.records import names_in
from skywalker.tls.words import CLOSED, SILENT
from skywalker.wire import frames, values
from skywalker.wire import junction as wire
from workers.calls.own_node import VERSION
from workers.stats.log import Log

# Each has at most one call in flight of these, which need different ids from nobody but each other.
_HELLO_ID: Final = values.pack(1)
_PING_ID: Final = values.pack(2)
_NODES_ID: Final = values.pack(3)
_JOIN_ID: Final = values.pack(4)
_PEER_ID: Final = values.pack(5)
_PROOF_ID: Final = values.pack(6)

LISTED_WITHIN_S: Final = 5.0
"""Seconds for a node to say who is in its ring, page by page."""

MAX_UNREAD: Final = 64 * KIB
"""Bytes of ours that a node may leave unread: we say little, and a node that lives reads it."""

MAX_REASON: Final = 400
"""Characters of a reason, which may be the other side's words."""

JOIN_AGAIN_S: Final = 2.0
"""Seconds after which a node whose ring is another than ours is told again where we are: who heard it may have died."""

EYEBALLS_S: Final = 0.1
"""Seconds that one address of a host name may take before the next is tried beside it."""

HANDSHAKE_S: Final = 0.7
"""Seconds for a node to shake hands by TLS: less than it has in all, so that it is known what it lacks."""

NO_JOINING: Final = "the node there lets nobody join"

_MUTE: Final[Mapping[type[OSError], str]] = {ConnectionResetError: CLOSED, ConnectionAbortedError: SILENT}
"""What it means that there was no handshake, by how asyncio says so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ours:
    """What is ours in every acquaintance: which node this is, and how it speaks with others.

    Others learn where it is from a :join, unless a source tells them (`joins` is false). `nonce` returns so many bytes
    that nobody can guess. `tls` returns the context, or raises ConfigError.
    """

    node: Member
    joins: bool
    nonce: Callable[[int], bytes]
    trust: Trust = dataclasses.field(default_factory=Trust)
    tls: Callable[[], ssl.SSLContext] | None = None


class Acquaintance(asyncio.Protocol):
    """A connection, from dial() until it is lost or hung up; the next one is another acquaintance.

    Each report to `roster` is followed by a call of `act`. After hang_up() there is none.
    """

    def __init__(self, address: Address, ours: Ours, roster: Roster, act: Callable[[], None], log: Log) -> None:
        self._address = address
        self._ours = ours
        self._roster = roster
        self._act = act
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._dialling: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._tail = b""
        self._reached = address  # by its number, once it is connected
        self._introduction: Introduction | None = None
        self._is_introduced = False
        self._is_greeted = False
        self._over = False
        self._pages: list[Member] = []
        self._version = ""  # of the ring that is being listed
        self._used = ""  # of the ring that the node uses
        self._joins_at = 0.0  # not before that again
        self._listed_by: asyncio.TimerHandle | None = None

    # What we do.

    def dial(self) -> None:
        """Begin to connect. How long that may take others decide."""
        assert self._dialling is None, "the next connection is another acquaintance"
        self._dialling = self._loop.create_task(self._dial(), name=f"dial {self._address}")

    def ping(self) -> None:
        """Ask whether the node lives."""
        self._write(wire.PING, _PING_ID)
        ring, now = self._roster.snapshot, self._loop.time()
        is_known = ring is None or ring.version == self._used or self._ours.node.id not in ring.by_id
        if self._ours.joins and not is_known and now >= self._joins_at:
            self._joins_at = now + JOIN_AGAIN_S
            self._write(wire.JOIN, _JOIN_ID, values.pack(str(self._ours.node.address)))

    def ask(self) -> None:
        """Ask who is in the ring that the node uses."""
        self._pages, self._version = [], ""
        self._listed_by = self._loop.call_later(LISTED_WITHIN_S, self._listed)
        self._write(wire.NODES, _NODES_ID)

    def hang_up(self) -> None:
        """Close the connection, or end the attempt, and report nothing more."""
        self._over = True
        self._no_more_pages()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _dial(self) -> None:
        host, tls = self._address.host, self._ours.tls
        numeric = ":" in host or host.replace(".", "").isdigit()
        try:
            await self._loop.create_connection(
                lambda: self,
                host,
                self._address.port,
                happy_eyeballs_delay=None if numeric else EYEBALLS_S,
                ssl=None if tls is None else tls(),
                server_hostname=None if tls is None else server_name(host),
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_S,
            )
        except ConfigError as error:
            self._end(str(error), NO_TLS)
        except OSError as error:
            self._broken(error)
        except ValueError:
            self._end(f"{host!r} cannot be a host name")

    def _broken(self, error: OSError) -> None:
        """The connection was not made, or is lost."""
        if isinstance(error, ssl.SSLError):
            self._end(cause_of(error), NO_TLS)
        elif self._transport is None and self._ours.tls is not None and type(error) in _MUTE:
            self._end(_MUTE[type(error)], NO_TLS)
        else:
            self._end(cause_of(error))

    def _write(self, *elements: bytes) -> None:
        assert self._transport is not None
        self._transport.write(wire.frame(*elements))
        if self._transport.get_write_buffer_size() > MAX_UNREAD:
            # Not within the call that has us write, which is that of somebody in the midst of something.
            self._loop.call_soon(self._end, "it does not read what we say")

    def _end(self, reason: str, what: str = NOBODY) -> None:
        """Close and report it, once; `what` is the kind of trouble."""
        if not self._over:
            self.hang_up()
            self._roster.ended(self._address, reason[:MAX_REASON], self._loop.time(), what)
            self._act()

    def _is_foreign(self, reason: str) -> None:
        self.hang_up()
        self._roster.foreign(self._address, reason[:MAX_REASON], self._loop.time())
        self._act()

    # What asyncio tells us.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._over:
            transport.abort()
            return
        peername = transport.get_extra_info("peername")
        if peername is None:
            self._end("connection reset by peer")  # before asyncio could ask who that was
        elif peername == transport.get_extra_info("sockname"):
            # A free port that the system hands out can be connected to itself.
            self._end("connection refused")
        else:
            self._reached = Address(*peername[:2])
            self._introduce(transport)

    def _introduce(self, transport: asyncio.Transport) -> None:
        ours = self._ours
        names = names_in(transport.get_extra_info("peercert") or {})
        nonce = ours.nonce(NONCE)
        self._introduction = Introduction(ours.trust, ours.node.id, ours.node.address, self._reached, names, nonce)
        try:
            challenge = self._introduction.begin(_PROOF_ID)
        except NotProven as error:
            self._is_no_node(error)
            return
        # At once: to one that does not take our certificate a later write would fail before it is heard why.
        transport.write(challenge or self._greeting())

    def _greeting(self) -> bytes:
        """Return all that is said to one that has proved itself, if it has to."""
        assert self._introduction is not None, "there is a connection"
        self._is_introduced = True
        node, token = self._ours.node, self._introduction.token
        # Before the greeting, so that one who does not let us in is never counted in. Nobody is who is asked for
        # here, so the connection goes on as that of a client.
        question = {"from": node.id, "by": 0, "node": "", "worker": 0, "version": VERSION}
        said = wire.frame(wire.PEER, _PEER_ID, values.pack(question | ({"token": token} if token else {})))
        if self._ours.joins:
            self._joins_at = self._loop.time() + JOIN_AGAIN_S
            said += wire.frame(wire.JOIN, _JOIN_ID, values.pack(str(node.address)))
        return said + wire.frame(wire.HELLO, _HELLO_ID, values.pack({"name": node.name, "ring": True}))

    def _is_no_node(self, error: NotProven) -> None:
        assert self._transport is not None
        self._transport.write(farewell(_PROOF_ID, error))
        if isinstance(error, Elsewhere):
            self._roster.hinted(error.address, self._loop.time())
            self._end(str(error), ELSEWHERE)
        else:
            self._end(str(error), NOT_PROVEN)

    def data_received(self, data: bytes) -> None:
        found, self._tail = frames.split(self._tail + data)
        for frame in found:
            if self._over:
                return
            try:
                if isinstance(frame, frames.BadFrame):
                    raise ValueError(frame.reason)
                self._received(frame)
            except ValueError as error:
                what = NOBODY if self._is_introduced else NOT_PROVEN
                self._end(f"it sent what cannot be read: {error}", what)

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, OSError):
            self._broken(exc)
        else:
            self._end("the node closed the connection" if exc is None else cause_of(exc))

    # What the node says.

    def _received(self, frame: list[bytes]) -> None:
        """Deal with a message, unless it is for somebody newer than us. Raises ValueError if it cannot be read."""
        method = frame[0]
        if not self._is_introduced:
            if method not in (wire.CHALLENGE, wire.ERROR) or len(frame) != 3:
                raise ValueError("something else than the answer to a challenge")
            hear = self._challenged if method == wire.CHALLENGE else self._failed
            hear(values.unpack(frame[2]))
        elif frame == [wire.PING, wire.NIL]:
            self._write(wire.PING, wire.NIL, wire.TRUE)
        elif method == wire.PING:
            self._roster.answered(self._address, self._loop.time())
            self._act()
        elif len(frame) == 3 and method in self._HEARS:
            self._HEARS[method](self, values.unpack(frame[2]))

    def _challenged(self, answer: Any) -> None:
        assert self._transport is not None
        assert self._introduction is not None, "it was asked for a proof"
        try:
            proof = self._introduction.heard(_PROOF_ID, answer)
        except NotProven as error:
            self._is_no_node(error)
        else:
            self._transport.write(proof + self._greeting())

    def _greeted(self, answer: Any) -> None:
        if self._is_greeted:
            raise ValueError("an answer to a second :hello")
        self._is_greeted = True
        refused = wire.refusal(answer)
        if refused is not None:
            if isinstance(refused, UnknownMethod | BadArity | BadFrame):
                self._is_foreign(f"it does not know :hello, {refused}")
            elif not self._is_shut_out(refused):
                self._end(f"the node said {refused}")
            return
        greeting = Greeting.parse(answer, self._reached)
        if greeting is None:
            self._is_foreign("its answer to :hello is none of a node's")
            return
        if self._introduction is not None and self._introduction.node not in ("", greeting.member.id):
            self._is_no_node(NotProven(f"it has proved to be {self._introduction.node}, and says that it is another"))
            return
        self._used = greeting.version
        self._roster.greeted(self._address, greeting, self._loop.time())
        self._act()

    def _pushed(self, news: Any) -> None:
        match news:
            case {"version": str(version), "leaving": bool(leaving)}:
                self._used = version
                self._roster.pushed(self._address, version, leaving, self._loop.time())
                self._act()
            case _:
                raise ValueError("a :ring that holds no version")

    def _page(self, page: Any) -> None:
        """Take in some members of a ring; one that has changed since the first page is read anew."""
        if self._listed_by is None:
            return
        match page:
            case {"version": str(version), "nodes": [*nodes], "more": bool(more)}:
                before = self._pages[-1].id if self._pages else ""
                members = [member for member in map(Member.parse, nodes) if member is not None]
                self._pages += members
                self._version = self._version or version
                if not more or len(self._pages) >= MAX_CONTACTS:
                    self._listed(version if version == self._version else "")
                elif members and members[-1].id > before:
                    self._write(wire.NODES, _NODES_ID, values.pack(members[-1].id))
                else:
                    self._listed()  # it does not know how to go on
            case _:
                self._listed()  # it does not know :nodes, or is of a later kind

    def _asked(self, answer: Any) -> None:
        self._is_shut_out(wire.refusal(answer))

    def _is_shut_out(self, refused: RequestError | None) -> bool:
        """Whether a node says that it does not know us, or not as a node; then it is reported."""
        if not isinstance(refused, Unauthorized) and not (
            isinstance(refused, Forbidden) and refused.details.get("missing") == "node"
        ):
            return False
        self._end(f"it said: {refused}", NOT_LET_IN)
        return True

    def _joined(self, answer: Any) -> None:
        refused = wire.refusal(answer)
        if self._is_shut_out(refused):
            return
        if isinstance(refused, Forbidden):
            # Not for long, perhaps: its workers are replaced one by one if it is told to reload with a cluster.
            self._end(f"it said: {refused}", NO_JOINING)
        elif refused is not None and not isinstance(refused, UnknownMethod):
            self._log.warning("join-refused", address=self._address, code=refused.code, reason=refused)

    def _failed(self, error: Any) -> None:
        refused = wire.refusal(error)
        if not self._is_shut_out(refused):
            self._end(f"the node said {refused or error!r}")

    _HEARS: ClassVar[Mapping[bytes, Callable[[Acquaintance, Any], None]]] = {
        wire.HELLO: _greeted,
        wire.RING: _pushed,
        wire.NODES: _page,
        wire.JOIN: _joined,
        wire.PEER: _asked,
        wire.PROOF: _asked,
        wire.ERROR: _failed,
    }

    def _listed(self, version: str = "") -> None:
        """Report who is in the ring; all of them, if it is that of a version."""
        self._no_more_pages()
        self._roster.listed(self._address, version, self._pages, self._loop.time())
        self._pages = []
        self._act()

    def _no_more_pages(self) -> None:
        if self._listed_by is not None:
            self._listed_by.cancel()
            self._listed_by = None
