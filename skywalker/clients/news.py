"""What befalls the connection of a client: it is logged, and told to who wants to know."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

log: Final = logging.getLogger("skywalker")
"""That of the package, which says nothing unless the program wants it."""

pubsub_log: Final = logging.getLogger("skywalker.pubsub")


OnConnect = Callable[[str], object]
"""Called with the address."""

OnDisconnect = Callable[[str, str], object]
"""Called with the address, and why the connection to it was lost."""


OnGap = Callable[[str], object]
"""Called with what is to be said of it."""


class News(NamedTuple):
    """There is a connection to an address; or with a `cause`: there is none any more."""

    address: str
    cause: str | None = None


class Notice(NamedTuple):
    """What the owner of a subscription is to be told of it, besides its connections."""

    text: str
    is_gap: bool
    """Whether it listens again, and may have missed something; else it does not listen at the moment."""


class Herald:
    """Tells the news of one core, to a program that may want none: it logs them, and calls whoever wants to know.

    What a callback raises is logged too.
    """

    def __init__(
        self,
        on_connect: OnConnect | None = None,
        on_disconnect: OnDisconnect | None = None,
        on_gap: OnGap | None = None,
        log: logging.Logger = log,
    ) -> None:
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._on_gap = on_gap
        self._log = log

    def tell(self, news: News | Notice) -> None:
        """Tell it."""
        match news:
            case News(address, None):
                self._log.info("connected to %s", address)
                self._call(f"a callback for the connection to {address}", self._on_connect, address)
            case News(address, cause):
                self._log.info("lost the connection to %s: %s", address, cause)
                self._call(f"a callback for the connection to {address}", self._on_disconnect, address, cause)
            case Notice(text, is_gap):
                self._log.warning("%s", text)
                self._call("on_gap", self._on_gap if is_gap else None, text)

    def _call(self, what: str, callback: Callable[..., object] | None, *told: object) -> None:
        if callback is not None:
            try:
                callback(*told)
            except Exception:
                self._log.exception("%s failed", what)
