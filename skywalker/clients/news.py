"""What befalls the connection of a client: it is logged, and told to who wants to know."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from skywalker.clients.log import log

OnConnect = Callable[[str], object]
"""Called with the address."""

OnDisconnect = Callable[[str, str], object]
"""Called with the address, and why the connection to it was lost."""


class News(NamedTuple):
    """There is a connection to an address; or with a `cause`: there is none any more."""

    address: str
    cause: str | None = None


class Teller(Protocol):
    """Tells the news of one core, whatever it has."""

    def tell(self, news: Any) -> None:
        """Tell it."""


class Herald:
    """Tells the news of one client, to a program that may want none."""

    def __init__(
        self,
        on_connect: OnConnect | None = None,
        on_disconnect: OnDisconnect | None = None,
        log: logging.Logger = log,
    ) -> None:
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._log = log

    def tell(self, news: News) -> None:
        """Log it, and call whoever wants to know; what that raises is logged too."""
        address, cause = news
        try:
            if cause is None:
                self._log.info("connected to %s", address)
                if self._on_connect is not None:
                    self._on_connect(address)
            else:
                self._log.info("lost the connection to %s: %s", address, cause)
                if self._on_disconnect is not None:
                    self._on_disconnect(address, cause)
        except Exception:
            self._log.exception("a callback for the connection to %s failed", address)
