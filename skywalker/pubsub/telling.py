"""How programs are told of their connections, and that a subscription does not listen, and then that it does again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from skywalker.clients import news
from skywalker.clients.news import News, OnConnect, OnDisconnect
from skywalker.pubsub.exchange import Notice

OnGap = Callable[[str], object]

log: Final = logging.getLogger("skywalker.pubsub")


class Herald(news.Herald):
    """Tells the news of one connection, and of those that replace it."""

    def __init__(
        self,
        on_connect: OnConnect | None = None,
        on_disconnect: OnDisconnect | None = None,
        on_gap: OnGap | None = None,
    ) -> None:
        super().__init__(on_connect, on_disconnect, log)
        self._on_gap = on_gap

    def tell(self, news: News | Notice) -> None:
        """Log it, and call whoever wants to know; what that raises is logged too."""
        if isinstance(news, News):
            super().tell(news)
            return
        log.warning("%s", news.text)
        if news.is_gap and self._on_gap is not None:
            try:
                self._on_gap(news.text)
            except Exception:
                log.exception("on_gap failed")
