"""Whom this worker lets in, and as whom: by what a connection shows when it is made, or by a token that it says."""

from __future__ import annotations

import socket
import struct
from typing import Final, Protocol

from skywalker.access.access import Access
from skywalker.access.principal import Principal
from skywalker.access.trust import ADVICE, Trust
from skywalker.errors import Busy, Forbidden, RequestError, Unauthorized
from skywalker.limits import Limits
from workers.access.account import Account
from workers.access.handshake_turns import Handshakes
from workers.access.refusals import Refusals
from workers.engine.loop import Alarm, Turn
from workers.stats.close_reasons import Close
from workers.stats.log import Log

_CREDENTIALS: Final = struct.Struct("@iII")
"""What the kernel tells of the process at the other end of a Unix socket: pid, uid, gid."""


class Impostor(Unauthorized):
    """A token that is nobody's, or a proof that is none; whoever says it is not listened to any more."""


def unknown() -> Unauthorized:
    """Return the error for whoever has not said who they are."""
    return Unauthorized("this node wants to know who is calling: give a token that it knows")


def speaks_tls() -> Unauthorized:
    """Return the error for whoever speaks none at a door that does."""
    return Unauthorized("this node speaks TLS here, and nothing else: connect by skywalkers://", {"tls": True})


class Unknown(Protocol):
    """One of them."""

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Have it go, with a last word if there is one for it."""


class Stranger:
    """Its place among them; `who` is a handshake first, and then the connection that came of it."""

    __slots__ = ("since", "who")

    def __init__(self, who: Unknown, since: float) -> None:
        self.who = who
        self.since = since


class Strangers:
    """Those of one worker: each has a short while to say who it is, and they are few."""

    def __init__(self, limits: Limits, turn: Turn) -> None:
        self._patience_s = limits.greeting_s
        self._most = limits.max_strangers
        self._turn = turn
        self._all: dict[Stranger, None] = {}  # the oldest first
        self._alarm = Alarm()

    def __len__(self) -> int:
        return len(self._all)

    def come(self, who: Unknown) -> Stranger:
        """Give one its place. If there are too many, the one that has been here for longest has to go."""
        if len(self._all) >= self._most:
            busy = Busy(f"more than {self._most} say not who they are", {"limit": "max_strangers", "value": self._most})
            self._turn_away(busy, "others came, and it had not said who it is")
        stranger = Stranger(who, self._turn.now)
        self._all[stranger] = None
        if self._alarm.at is None:
            self._alarm.set(self._turn, stranger.since + self._patience_s, self._look)
        return stranger

    def go(self, stranger: Stranger) -> None:
        """It is none any more, or gone."""
        self._all.pop(stranger, None)

    def _look(self) -> None:
        while self._all:
            due = next(iter(self._all)).since + self._patience_s
            if due > self._turn.now:
                self._alarm.set(self._turn, due, self._look)
                return
            self._turn.counters.limited("greeting_s")
            late = f"it did not say who it is within {self._patience_s:g} s"
            self._turn_away(Unauthorized(late), late)

    def _turn_away(self, error: RequestError, text: str) -> None:
        oldest = next(iter(self._all))
        del self._all[oldest]
        oldest.who.turn_away(error, Close.UNAUTHORIZED, text)


class Applicant(Unknown, Protocol):
    """A connection, as far as it matters whose it is."""

    account: Account | None
    stranger: Stranger | None
    proved: bool
    paced: bool

    @property
    def knows_tokens(self) -> bool:
        """Whether it has a word by which a client says who it is."""

    @property
    def in_flight(self) -> int:
        """What its principal may have so many of: calls that wait, and subscriptions."""

    def count_in_flight(self) -> None:
        """Have each account know how much its connections have of that now."""


class Admission:
    """Of one worker. Without `access` everybody is let in, and may do everything.

    `trust` says who is a node; unless it demands a proof, that is whoever says so.
    """

    def __init__(self, access: Access | None, limits: Limits, turn: Turn, log: Log, trust: Trust | None = None) -> None:
        self.access = access
        self.trust = Trust() if trust is None else trust
        self.refusals = Refusals(log.warning, "refused", turn.clock)
        self.mistrusted = Refusals(log.warning, "taken-for-no-node", turn.clock)
        self.turned_away = Refusals(log.info, "connection-refused", turn.clock)
        self.failed_handshakes = Refusals(log.info, "handshake-failed", turn.clock)
        self.strangers = Strangers(limits, turn)
        self.handshakes = Handshakes(turn)
        self._turn = turn
        self._accounts: dict[str, Account] = {}  # by the name of the principal

    def end(self) -> None:
        """Nobody comes any more: have those who were refused without a line of their own be counted in the log."""
        for refusals in (self.refusals, self.mistrusted, self.turned_away, self.failed_handshakes):
            refusals.end()

    def greet(self, connection: Applicant, names: tuple[str, ...], host: str, uid: int | None) -> None:
        """Find out whose a new connection is: by names in a certificate, a user of this machine, or where it is from.

        It is a stranger if that tells nothing. Raises Busy if whose it is has too many.
        """
        access = self.access
        if access is None:
            self.known(connection)
            return
        connection.proved = self.trust.knows(names)
        principal, _ = access.of(names, uid, host)
        try:
            if principal is not None:
                self._enter(connection, principal)
                return
        except Busy:
            # Who shows nothing now may still say who they are: those that never will must not keep them from it.
            if principal is not access.anyone or not connection.knows_tokens:
                raise
        if connection.stranger is None:
            connection.stranger = self.strangers.come(connection)

    def present(self, connection: Applicant, token: str | bytes | None) -> None:
        """Take a connection for whose token it says. Raises Impostor, Unauthorized, or Busy as greet() does.

        One that says none stays who it is.
        """
        if self.access is None:
            return
        if token is None:
            if connection.account is None:
                raise unknown()
            return
        principal = self.access.by_token(token if isinstance(token, str) else token.decode(errors="replace"))
        if principal is None:
            raise Impostor("this node knows no such token")
        self._become(connection, principal)

    def has_proved(self, connection: Applicant, secret: str) -> None:
        """A connection has proved that it knows a secret of the cluster. Raises as present() does."""
        if self.access is not None:
            principal = self.access.by_token(secret)
            if principal is None or not principal.node:
                raise Impostor(f"no principal with node = true has the hash of this cluster.secret: {ADVICE}")
            self._become(connection, principal)
        connection.proved = True

    def check_node(self, connection: Applicant, token: str | bytes | None = None) -> None:
        """Raise Unauthorized or Forbidden unless a connection is known to be a node's.

        One of the version before says the secret itself, as a `token`, which is enough while that is allowed.
        """
        if not self.trust.is_demanded or connection.proved:
            return
        if token is not None and self.trust.in_clear and (secret := self.trust.secrets.find(token)):
            self.has_proved(connection, secret)
            return
        sent = "it sent the secret itself, as nodes of the version before do: upgrade it, or allow secret_in_clear"
        lack = ADVICE if token is None else sent
        text = f"whoever calls has not proved to be a node: {lack}"
        missing = {"missing": "node"}
        raise (Unauthorized if connection.stranger is not None else Forbidden)(text, missing)

    def check_move(self, name: str | None, in_flight: int) -> None:
        """Raise what keeps out a connection of another worker of this node, which has so many calls in flight.

        That has found out whose it is: the `name` is that of its principal.
        """
        if self.access is not None:
            principal = self._principal(name)
            if principal is None:
                raise unknown()
            self._account(principal).check_room(in_flight)

    def has_moved(self, connection: Applicant, name: str | None) -> None:
        """One for which that has just raised nothing is here."""
        if self.access is not None:
            principal = self._principal(name)
            assert principal is not None, "it is known"
            self._enter(connection, principal)

    def _principal(self, name: str | None) -> Principal | None:
        assert self.access is not None, "somebody is known"
        return next((each for each in self.access.principals if each.name == name), None)

    def _become(self, connection: Applicant, principal: Principal) -> None:
        before = connection.account
        if before is None or before.principal is not principal:
            connection.count_in_flight()
            self._enter(connection, principal)
            if before is not None:
                before.connections -= 1
                before.in_flight -= connection.in_flight

    def gone(self, connection: Applicant) -> None:
        """It is closed, or nobody's any more."""
        self.known(connection)
        if connection.account is not None:
            connection.account.connections -= 1
            assert connection.account.connections >= 0, "no more go than have come"

    def _enter(self, connection: Applicant, principal: Principal) -> None:
        account = self._account(principal)
        account.open(connection.in_flight)
        connection.account = account
        if account.bucket is not None:
            connection.paced = True
        self.known(connection)

    def _account(self, principal: Principal) -> Account:
        account = self._accounts.get(principal.name)
        if account is None:
            account = self._accounts[principal.name] = Account(principal, self._turn.now)
        return account

    def known(self, connection: Applicant) -> None:
        """It is no stranger, or not any more."""
        if connection.stranger is not None:
            self.strangers.go(connection.stranger)
            connection.stranger = None


def user_of(sock: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a Unix socket, as they were when it was connected."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid
