"""One line on standard error for each event that is worth an operator's attention.

    time=2026-01-31T12:00:00.123Z level=info event=serving worker=0 pid=4711 ...

or the same as an object of JSON. A line is one write, so that those of several processes do not mix. Writing never
blocks: a reader that does not keep up loses lines, and the next line that gets through says how many.
"""

from __future__ import annotations

import json
import math
import os
import select
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from skywalker.access import token
from skywalker.setting import LOG_FORMATS, LOG_LEVELS

BURST: Final = 70
PER_SECOND: Final = 10

KEPT: Final = {"info": 20, "warning": 10, "error": 0}
"""Lines of a burst that each level leaves for those above it: whoever causes many lines hides none that matter more."""

MAX_NAME: Final = 64
"""Characters of what a client calls itself that go into a line."""


class Form:
    """Which lines are written, and how; shared by all logs that were bound to one."""

    def __init__(self) -> None:
        self.levels = frozenset(LOG_LEVELS)
        self.text = _logfmt


class Log:
    """Writes event lines to a file descriptor, each with the fields that were bound to it."""

    def __init__(self, clock: Callable[[], float], fd: int = 2, **fields: object) -> None:
        self._clock = clock
        self._fd = fd
        self._form = Form()
        self._fields = fields
        self._dropped = 0
        self._credit = float(BURST)
        self._credited_at = clock()

    def bind(self, **fields: object) -> Log:
        """Return a log whose lines carry these fields too."""
        bound = Log(self._clock, self._fd, **{**self._fields, **fields})
        bound._form = self._form
        return bound

    def use(self, level: str, form: str) -> None:
        """From now on write lines of this level and above, and in this form: see LOG_LEVELS and LOG_FORMATS."""
        self._form.levels = frozenset(LOG_LEVELS[LOG_LEVELS.index(level) :])
        self._form.text = _FORMS[form]

    def info(self, event: str, **fields: object) -> None:
        """Something that an operator may want to know happened."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something went wrong and was dealt with."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Something went wrong that an operator should look at."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        if level not in self._form.levels:
            return
        # What a peer can cause is bounded, or it could fill the disk.
        now = self._clock()
        self._credit = min(BURST, self._credit + (now - self._credited_at) * PER_SECOND)
        self._credited_at = now
        if self._credit < 1 + KEPT[level] or not self._writable():
            self._dropped += 1
            return
        self._credit -= 1
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        everything = {"time": stamp, "level": level, "event": event, **self._fields, **fields}
        if self._dropped:
            everything["lines_dropped"] = self._dropped
        line = token.masked(self._form.text(everything)) + "\n"
        try:
            os.write(self._fd, line.encode("utf-8", "backslashreplace"))
            self._dropped = 0
        except OSError:
            self._dropped += 1  # nobody reads any more; there is nobody to tell

    def _writable(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return any(mask & select.POLLOUT for _, mask in poll.poll(0))


def _logfmt(fields: dict[str, object]) -> str:
    return " ".join(f"{key}={_text(value)}" for key, value in fields.items())


def _json(fields: dict[str, object]) -> str:
    return json.dumps({key: _value(value) for key, value in fields.items()})


_FORMS: Final = dict(zip(LOG_FORMATS, (_logfmt, _json), strict=True))


def _value(value: object) -> object:
    """Return a number or a truth as it is, and anything else as text; in it, half a surrogate pair is escaped."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).encode(errors="backslashreplace").decode()


def _text(value: object) -> str:
    text = str(value)
    return text if text and not set(text) & set(' "=\n\r\t') and text.isprintable() else json.dumps(text)
