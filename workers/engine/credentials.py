"""How a node that has a certificate speaks TLS: to who connects to it, to other nodes, and to itself."""

from __future__ import annotations

import functools
import ssl
from typing import Final, final

from skywalker.config import Config
from skywalker.tls.certificate import fault_of
from skywalker.tls.contexts import client_context, own_context, server_context
from workers.engine.renewed import Renewed
from workers.stats.log import Log


@final
class Credentials:
    """Made by the supervisor, and inherited by its children: what was good once lasts until something better is."""

    def __init__(self, config: Config, log: Log) -> None:
        """Raises ConfigError if the files are not what they should be."""
        cert, key, ca = files = config.tls_cert, config.tls_key, config.tls_ca
        fault = functools.partial(fault_of, cert, key)
        self.server: Final = Renewed(functools.partial(server, config), files, fault, log)
        """To who connects."""
        self.client: Final = Renewed(functools.partial(client_context, ca, cert, key), files, fault, log)
        """To other nodes."""
        self.own: Final = Renewed(functools.partial(own_context, cert, key), files, fault, log)
        """To the node itself, which need not know by what name."""
        self._all: Final = self.server, self.client, self.own
        self.renew()
        if useless := fault():
            # The clock may be wrong, or a better one be on its way: who knows better goes on.
            log.warning("certificate-useless", reason=useless)

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
