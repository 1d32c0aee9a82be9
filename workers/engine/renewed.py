"""How TLS is spoken now: the files that say so are looked at again when somebody connects."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Final

from skywalker.errors import ConfigError
from workers.stats.log import Log

LOOK_S: Final = 5.0
"""Seconds from one look at the files to the next, at least: whoever renews a certificate has not to tell anybody."""


class Renewed:
    """A context that is made of some files, and anew when they have changed. Any thread may ask for it."""

    def __init__(
        self, make: Callable[[], ssl.SSLContext], files: Sequence[str], fault: Callable[[], str], log: Log
    ) -> None:
        """`make` makes it, and raises ConfigError while the files are not what they should be.

        `fault` says why what they are is of no use all the same: what there is already is better then.
        """
        self._make = make
        self._fault = fault
        self._files = [file for file in files if file]
        self.log = log
        self._context: ssl.SSLContext | None = None
        self._seen: list[tuple[int, int, int] | None] = []  # what it was made of
        self._failed = ""  # why it could not be made anew, if so
        self._look_at = 0.0

    def __call__(self) -> ssl.SSLContext:
        """Return it. Raises ConfigError as long as none could be made."""
        context, now = self._context, time.monotonic()
        if context is not None and now < self._look_at:
            return context
        self._look_at = now + LOOK_S
        state = [_state_of(file) for file in self._files]
        if context is not None and state == self._seen:
            self._failed = ""  # they may have come back
            return context
        try:
            if context is not None and (fault := self._fault()):
                raise ConfigError(fault)
            made = self._make()
        except ConfigError as error:
            if context is None:
                raise
            # Half of them may be there, or who may read them is still to be said: it is tried again with each look.
            if str(error) != self._failed:
                self._failed = str(error)
                self.log.error("certificate-not-renewed", reason=error)
            return context
        self._context, self._seen, self._failed = made, state, ""
        if context is not None:
            self.log.info("certificate-renewed", file=self._files[0])
        return made


def _state_of(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
