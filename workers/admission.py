"""Whom this worker lets in, and as whom: by what a connection shows when it is made, or by a token that it says."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final

from skywalker.access.access import Access
from skywalker.access.principal import Principal
from skywalker.errors import Busy, Unauthorized
from workers.account import Account
from workers.handshakes import Handshakes
from workers.log import Log
from workers.refusals import Refusals
from workers.strangers import Strangers

if TYPE_CHECKING:
    from skywalker.limits import Limits
    from workers.connection import Connection
    from workers.turn import Turn

_CREDENTIALS: Final = struct.Struct("@iII")
"""What the kernel tells of the process at the other end of a Unix socket: pid, uid, gid."""


class WrongToken(Unauthorized):
    """A token that is nobody's; whoever says it is not listened to any more."""


def unknown() -> Unauthorized:
    """Return the error for whoever has not said who they are."""
    return Unauthorized("this node wants to know who is calling: give a token that it knows")


def speaks_tls() -> Unauthorized:
    """Return the error for whoever speaks none at a door that does."""
    return Unauthorized("this node speaks TLS here, and nothing else: connect by skywalkers://", {"tls": True})


class Admission:
    """Of one worker. Without `access` everybody is let in, and may do everything."""

    def __init__(self, access: Access | None, limits: Limits, turn: Turn, log: Log) -> None:
        self.access = access
        self.refusals = Refusals(log.warning, "refused")
        self.turned_away = Refusals(log.info, "connection-refused")
        self.failed_handshakes = Refusals(log.info, "handshake-failed")
        self.strangers = Strangers(limits, turn)
        self.handshakes = Handshakes(turn)
        self._turn = turn
        self._accounts: dict[str, Account] = {}  # by the name of the principal

    def greet(self, connection: Connection, names: tuple[str, ...], host: str, uid: int | None) -> None:
        """Find out whose a new connection is: by names in a certificate, a user of this machine, or where it is from.

        It is a stranger if that tells nothing. Raises Busy if whose it is has too many.
        """
        access = self.access
        if access is None:
            self.known(connection)
            return
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

    def present(self, connection: Connection, token: str | bytes | None) -> None:
        """Take a connection for whose token it says. Raises WrongToken, Unauthorized, or Busy as greet() does.

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
            raise WrongToken("this node knows no such token")
        before = connection.account
        if before is None or before.principal is not principal:
            self._enter(connection, principal)
            if before is not None:
                before.connections -= 1
                before.in_flight -= connection.in_flight

    def gone(self, connection: Connection) -> None:
        """It is closed, or nobody's any more."""
        self.known(connection)
        if connection.account is not None:
            connection.account.connections -= 1

    def _enter(self, connection: Connection, principal: Principal) -> None:
        account = self._accounts.get(principal.name)
        if account is None:
            account = self._accounts[principal.name] = Account(principal, self._turn.now)
        account.open(connection.in_flight)
        connection.account = account
        if account.bucket is not None:
            connection.paced = True
        self.known(connection)

    def known(self, connection: Connection) -> None:
        """It is no stranger, or not any more."""
        if connection.stranger is not None:
            self.strangers.go(connection.stranger)
            connection.stranger = None


def user_of(sock: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a Unix socket, as they were when it was connected."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid
