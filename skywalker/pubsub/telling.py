"""How the owner of a subscription is told that it does not listen, and then that it does again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from skywalker.pubsub.exchange import News

OnGap = Callable[[str], object]

log: Final = logging.getLogger("skywalker.pubsub")


def tell(news: News, on_gap: OnGap | None) -> None:
    """Log what is new, and call `on_gap` if it is a gap; what that raises is logged too."""
    log.warning("%s", news.text)
    if news.is_gap and on_gap is not None:
        try:
            on_gap(news.text)
        except Exception:
            log.exception("on_gap failed")
