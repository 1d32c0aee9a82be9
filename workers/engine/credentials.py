"""How a node that has a certificate speaks TLS: to who connects to it, to other nodes, and to itself.

The files that say so are looked at again when somebody connects.
"""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Final, final

from skywalker.config import Config
from skywalker.errors import ConfigError
from skywalker.tls.certificate import fault_of
from skywalker.tls.contexts import client_context, own_context, server_context
from workers.stats.log import Log

LOOK_S: Final = 5.0
"""Seconds from one look at the files to the next, at least: whoever renews a certificate has not to tell anybody."""


class Renewed:
    """A context that is made of some files, and anew when they have changed. Any thread may ask for it."""

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Sequence[str],
        fault: Callable[[], str],
        log: Log,
        clock: Callable[[], float],
    ) -> None:
        """`make` makes it, and raises ConfigError while the files are not what they should be.

        `fault` says why what they are is of no use all the same: what there is already is better then.
        """
        self._make = make
        self._fault = fault
        self._files = [file for file in files if file]
        self.log = log
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._seen: list[tuple[int, int, int] | None] = []  # what it was made of
        self._failed = ""  # why it could not be made anew, if so
        self._look_at = 0.0

    def __call__(self) -> ssl.SSLContext:
        """Return it. Raises ConfigError as long as none could be made."""
        context, now = self._context, self._clock()
        if context is not None and now < self._look_at:
            return context
        self._look_at = now + LOOK_S
        state = [_state_of(file) for file in self._files]
        if context is not None and state == self._seen:
            self._failed = ""  # they may have come back
            return context
        try:
            if context is not None and (fault := self._fault()):
                raise ConfigError(fault)
            made = self._make()
        except ConfigError as error:
            if context is None:
                raise
            # Half of them may be there, or who may read them is still to be said: it is tried again with each look.
            if str(error) != self._failed:
                self._failed = str(error)
                self.log.error("certificate-not-renewed", reason=error)
            return context
        self._context, self._seen, self._failed = made, state, ""
        if context is not None:
            self.log.info("certificate-renewed", file=self._files[0])
        return made


def _state_of(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


@final
class Credentials:
    """Made by the supervisor, and inherited by its children: what was good once lasts until something better is."""

    def __init__(self, config: Config, log: Log, clock: Callable[[], float]) -> None:
        """Raises ConfigError if the files are not what they should be."""
        cert, key, ca = files = config.tls_cert, config.tls_key, config.tls_ca
        fault = functools.partial(fault_of, cert, key)
        self.server: Final = Renewed(functools.partial(server, config), files, fault, log, clock)
        """To who connects."""
        self.client: Final = Renewed(functools.partial(client_context, ca, cert, key), files, fault, log, clock)
        """To other nodes."""
        self.own: Final = Renewed(functools.partial(own_context, cert, key), files, fault, log, clock)
        """To the node itself, which need not know by what name."""
        self._all: Final = self.server, self.client, self.own
        self.renew()
        if useless := fault():
            # The clock may be wrong, or a better one be on its way: who knows better goes on.
            log.warning("certificate-useless", reason=useless)

    @staticmethod
    def of(config: Config, log: Log, clock: Callable[[], float]) -> Credentials | None:
        """Return those that the settings name, if they do. Raises ConfigError."""
        return Credentials(config, log, clock) if config.tls_cert else None

    def renew(self) -> None:
        """See whether the files have changed. Those that are not what they should be are told of in the log."""
        for renewed in self._all:
            renewed()

    def told_by(self, log: Log) -> Credentials:
        """Have that log told, from now on, and return this."""
        for renewed in self._all:
            renewed.log = log
        return self


def server(config: Config) -> ssl.SSLContext:
    """Return how a node speaks TLS to who connects. Raises ConfigError."""
    return server_context(
        config.tls_cert, config.tls_key, config.tls_ca, minimum=config.tls_minimum, required=config.certifies
    )
