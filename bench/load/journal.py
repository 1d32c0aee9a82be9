"""The journal of a load: its calls as the clients saw them, in the format in which a node keeps its own.

A call that was lost with its connection is not there: what became of it is not known. One that a worker
refused since it drains is there once, as it ended where it was issued again.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.load.page import Page
from bench.load.plan import TIMED_OUT as TIMED_OUT_CODE
from bench.load.plan import Load
from bench.servers.peer import Script
from skywalker.errors import Busy, Cancelled, Draining, OutcomeUnknown
from skywalker.journal.header import Origin
from skywalker.journal.record import (
    BUSY,
    CANCELLED,
    DRAINING,
    ERROR,
    HERE,
    JUNCTION,
    MET,
    PAGE_RECORDS,
    SIBLING,
    TIMED_OUT,
    UNKNOWN_OUTCOME,
    codes,
)
from skywalker.journal.settings import JournalSettings
from skywalker.journal.writer import Writer
from skywalker.limits import MIB
from skywalker.ring import token_of
from skywalker.wire import values

ROTATE_BYTES: Final = 64 * MIB
ROTATE_S: Final = 60.0

_OUTCOMES: Final = {
    TIMED_OUT_CODE: TIMED_OUT,
    Cancelled.code: CANCELLED,
    Busy.code: BUSY,
    Draining.code: DRAINING,
    OutcomeUnknown.code: UNKNOWN_OUTCOME,
}


@dataclasses.dataclass(slots=True)
class Notes:
    """What one connection's lanes do, on its way into the journal."""

    journal: Journal
    method: int
    connection: int
    tokens: list[int]  # by lane
    size: int  # of the values
    began: list[float]  # by lane, when its call was made, or was due

    def made(self, lanes: bytes, times: Sequence[float]) -> None:
        """Calls are made, each of which was made, or was due, at its own time."""
        for lane, began in zip(lanes, times, strict=True):
            self.began[lane] = began

    def answered(self, lanes: bytes, now: float, foreign: bytes) -> None:
        """Calls were answered well, those of `foreign` lanes by a worker that does not own their topic."""
        page = self.journal.page_for(len(lanes))
        here, elsewhere = (codes(self.method, MET, route, JUNCTION) for route in (HERE, SIBLING))
        for lane in lanes:
            how = elsewhere if lane in foreign else here
            page.add(now, self.tokens[lane], now - self.began[lane], self.size, self.connection, how)

    def failed(self, lane: int, now: float, code: str) -> None:
        """A call failed."""
        how = codes(self.method, _OUTCOMES.get(code, ERROR), HERE, JUNCTION)
        page = self.journal.page_for(1)
        page.add(now, self.tokens[lane], now - self.began[lane], 0, self.connection, how)


class Journal:
    """What one generator writes."""

    def __init__(self, load: Load) -> None:
        settings = JournalSettings(Path(load.journal), 1, ROTATE_BYTES, ROTATE_S, sys.maxsize)
        self._writer = Writer(settings, Origin("bench", load.prefix, "bench", load.generator), _say, _say)
        self._page = Page()
        self._connections = 0

    def notes(self, script: Script, method: int, load: Load) -> Notes:
        """Return those of another connection, and have its topics named."""
        self._connections += 1
        tokens = [token_of(topic) for topic in script.topics]
        for token, topic in dict(zip(tokens, script.topics, strict=True)).items():
            self._writer.name(token, topic)
        size = len(values.pack(b"." * load.value_bytes))
        return Notes(self, method, self._connections, tokens, size, [0.0] * len(tokens))

    def page_for(self, records: int) -> Page:
        """Return a page with room for so many."""
        if self._page.count + records > PAGE_RECORDS:
            self.flush()
        return self._page

    def flush(self) -> None:
        """Have what there is written, by another thread."""
        page = self._page
        if page.count:
            page.begin(self._writer.write(page.data, page.count))

    def close(self) -> None:
        """Write the rest."""
        self.flush()
        self._writer.close()


def _say(event: str, **fields: Any) -> None:
    told = " ".join(f"{name}={value}" for name, value in fields.items())
    print(f"generator: {event} {told}", file=sys.stderr)
