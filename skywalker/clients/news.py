"""What befalls the connection of a client: it is logged, and told to who wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skywalker.clients.log import log

OnConnect = Callable[[str], object]
"""Called with the address."""

OnDisconnect = Callable[[str, str], object]
"""Called with the address, and why the connection to it was lost."""


class News(NamedTuple):
    """There is a connection to an address; or with a `cause`: there is none any more."""

    address: str
    cause: str | None = None


class Herald:
    """Tells the news of one client, to a program that may want none."""

    def __init__(self, on_connect: OnConnect | None, on_disconnect: OnDisconnect | None) -> None:
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect

    def tell(self, news: News) -> None:
        """Log it, and call whoever wants to know; what that raises is logged too."""
        address, cause = news
        try:
            if cause is None:
                log.info("connected to %s", address)
                if self._on_connect is not None:
                    self._on_connect(address)
            else:
                log.info("lost the connection to %s: %s", address, cause)
                if self._on_disconnect is not None:
                    self._on_disconnect(address, cause)
        except Exception:
            log.exception("a callback for the connection to %s failed", address)
