"""Doing again and again what may fail: looking at a source, for one. For threads that may block.

An outage is said once, when it begins and when it is over; what was known before it is kept.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Final

from skywalker import backoff
from skywalker.address import Address
from skywalker.discovery.source import Source
from skywalker.errors import DiscoveryError

RETRY_CAP_S: Final = 5.0
"""Seconds within which a source that failed is asked again, however long it has: it serves more than us."""

Trouble = Callable[[str | None], None]
"""Told what is wrong when an outage begins, and None when it is over."""


def watch(
    source: Source,
    found: Callable[[frozenset[Address]], None],
    trouble: Trouble,
    stopped: threading.Event,
    luck: Callable[[], float] = random.random,
) -> None:
    """Look at a source until `stopped` is set: found() is called with the first addresses, and whenever they differ.

    To end it, set `stopped` and then close the source. A look at Consul that waits goes on for up to a minute, so call
    this in a thread that is a daemon.
    """
    known: frozenset[Address] | None = None

    def look() -> float | None:
        nonlocal known
        finding = source.look()
        if finding.addresses != known and not stopped.is_set():
            known = finding.addresses
            found(known)
        return finding.pause_s

    repeat(look, trouble, stopped, luck)


def repeat(
    step: Callable[[], float | None],
    trouble: Trouble,
    stopped: threading.Event,
    luck: Callable[[], float] = random.random,
) -> None:
    """Call step() until `stopped` is set. It returns the seconds until the next, None for never, or raises."""
    failures = 0
    while not stopped.is_set():
        try:
            pause = step()
        except DiscoveryError as error:
            if not failures and not stopped.is_set():
                trouble(str(error))
            pause = backoff.delay(failures, luck(), cap_s=RETRY_CAP_S)
            failures += 1
        else:
            if failures:
                failures = 0
                trouble(None)
        stopped.wait(pause)
