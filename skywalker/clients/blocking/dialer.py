"""Makes connections, a step at a time, so that whoever dials can stop at its own deadline and another go on."""

from __future__ import annotations

import random
import select
import socket
import time
from typing import Any, Final

from skywalker.address import Address
from skywalker.clients.blocking.opening import Opening
from skywalker.clients.homes import Homes, Round
from skywalker.clients.settings import Settings
from skywalker.clients.sockets import ATTEMPT_S, HASTY_S, tune
from skywalker.dialling import begin, cause_of
from skywalker.discovery.source import Source
from skywalker.errors import DiscoveryError

DIAL_STEP_S: Final = 0.1
"""Seconds for which a thread that dials is deaf to close()."""


class Dialer:
    """Dials the addresses at which there may be a node, over and over. Not for use by two threads at a time."""

    def __init__(self, settings: Settings, homes: Homes) -> None:
        self._settings = settings
        self._homes = homes
        self._source: Source | None = None
        self._round: Round | None = None
        self.address: Address | None = None
        """The one that is dialled, or was last."""
        self._not_before = 0.0
        self._candidates: list[tuple[int, Any]] = []  # what its host's name stands for, still to be tried
        self._opening: Opening | None = None  # the attempt under way
        self._give_up_at = 0.0

    def pause(self, seconds: float) -> None:
        """Let this much time pass before the next attempt."""
        self._not_before = time.monotonic() + seconds

    def interrupt(self) -> None:
        """Have whoever dials, in another thread, not wait for the source any more; nothing can be asked of it then.

        A look at Consul cannot be ended: one under way takes up to eight seconds more.
        """
        if self._source is not None:
            self._source.close()

    @property
    def cause(self) -> str:
        """Why there is no connection so far, empty if nothing was tried."""
        if self._round is None:
            return ""
        if self._opening is not None and self._opening.records is not None:
            return self._round.cause(self._settings.where, cause_of(self._opening.too_late()))
        return self._round.cause(self._settings.where)

    def close(self) -> None:
        """Give up the attempt under way, if any."""
        self._round = None
        self._candidates.clear()
        self._drop_attempt()

    def advance(self, until: float) -> Opening | None:
        """Go on dialling, to `until` at most; return the connection once there is one, that blocks from now on.

        Raises OSError when every address that there is was tried in vain. What looks addresses up may take longer.
        """
        now = time.monotonic()
        if now < self._not_before:
            time.sleep(max(0.0, min(until, self._not_before) - now))
            if time.monotonic() < self._not_before:
                return None
        if self._round is None:
            self._round = Round(self._homes, random.random)
            self._go_on(self._round)
        while True:
            try:
                return self._attempt(self._round, until)
            except OSError as error:
                self._drop_attempt()
                if not self._candidates:
                    assert self.address is not None
                    self._round.failed(self.address, cause_of(error))
                    self._go_on(self._round)

    def _go_on(self, round: Round) -> None:
        """Turn to the next address. Raises OSError if there is none."""
        self.address = round.next()
        if self.address is None and not round.is_complete:
            try:
                self._source = self._source or self._settings.source()
                round.found(self._source.addresses())
            except DiscoveryError as error:
                round.trouble(str(error))
            self.address = round.next()
        if self.address is None:
            self._round = None
            raise ConnectionError(round.cause(self._settings.where))

    def _attempt(self, round: Round, until: float) -> Opening | None:
        if self._opening is None:
            self._opening = self._begin(round)
        opening = self._opening
        poller = select.poll()
        is_open = False
        while not is_open:
            poller.register(opening.socket, opening.events)
            if not poller.poll(max(0.0, min(until, self._give_up_at) - time.monotonic()) * 1000):
                if time.monotonic() >= self._give_up_at:
                    raise opening.too_late()
                return None
            try:
                is_open = opening.advance()
            except BaseException:
                self._drop_attempt()  # an exception may have come halfway through it
                raise
        self._opening = None
        self._round = None
        self._candidates.clear()
        opening.socket.setblocking(True)
        return opening

    def _begin(self, round: Round) -> Opening:
        assert self.address is not None
        if not self._candidates:
            self._candidates = _candidates(self.address)
        family, form = self._candidates.pop(0)
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            tune(sock)
            begin(sock, form)
        except OSError:
            sock.close()
            raise
        self._give_up_at = time.monotonic() + (ATTEMPT_S if round.is_last else HASTY_S)
        return Opening(sock, self.address.host, self._settings.tls)

    def _drop_attempt(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.socket.close()


def _candidates(address: Address) -> list[tuple[int, Any]]:
    """Return what sockets can be connected to for an address: family and form, several for some names."""
    if address.is_unix:
        return [(socket.AF_UNIX, address.path)]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{address.host!r} cannot be a host name") from error
    return [(family, form) for family, _, _, _, form in found]
