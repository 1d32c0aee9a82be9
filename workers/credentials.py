"""How a node that has a certificate speaks TLS: to who connects to it, to other nodes, and to itself."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from skywalker.config import Config
from skywalker.tls.contexts import client_context, own_context, server_context
from workers.log import Log
from workers.renewed import Renewed

Context = Callable[[], ssl.SSLContext]


class Credentials:
    """Made by the supervisor, and inherited by its children: what was good once lasts until something better is."""

    def __init__(self, config: Config, log: Log) -> None:
        """Raises ConfigError if the files are not what they should be."""
        makers: tuple[Context, ...] = (lambda: server(config), lambda: client(config), lambda: own(config))
        files = config.tls_cert, config.tls_key, config.tls_ca
        self._all: Final = [Renewed(make, files, log) for make in makers]
        self.renew()

    def renew(self) -> None:
        """See whether the files have changed. Those that are not what they should be are told of in the log."""
        for renewed in self._all:
            renewed()

    def told_by(self, log: Log) -> Credentials:
        """Have that log told, from now on, and return this."""
        for renewed in self._all:
            renewed.log = log
        return self

    @property
    def server(self) -> ssl.SSLContext:
        """To who connects."""
        return self._all[0]()

    @property
    def client(self) -> ssl.SSLContext:
        """To other nodes."""
        return self._all[1]()

    @property
    def own(self) -> ssl.SSLContext:
        """To the node itself, which need not know by what name."""
        return self._all[2]()


def server(config: Config) -> ssl.SSLContext:
    """Return how a node speaks TLS to who connects. Raises ConfigError."""
    return server_context(
        config.tls_cert, config.tls_key, config.tls_ca, minimum=config.tls_minimum, required=config.certifies
    )


def client(config: Config) -> ssl.SSLContext:
    """Return how it speaks TLS to other nodes. Raises ConfigError."""
    return client_context(config.tls_ca, config.tls_cert, config.tls_key)


def own(config: Config) -> ssl.SSLContext:
    """Return how it speaks TLS to itself. Raises ConfigError."""
    return own_context(config.tls_cert, config.tls_key)
