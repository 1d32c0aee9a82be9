"""What becomes of it when data that should be there is not: an error, or a warning for who asked for that."""

from __future__ import annotations

import logging
from typing import Final

from skywalker.errors import SkywalkerError

FAIL: Final = "failOnDataLoss"
"""The option that says which."""

_log: Final = logging.getLogger("skywalker.pipeline")


class DataLossError(SkywalkerError):
    """Rows or records are lost, or may be."""


class Losses:
    """Decides it for one read."""

    def __init__(self, fail: bool) -> None:
        self._fail = fail

    def report(self, loss: str | SkywalkerError) -> None:
        """Raise DataLossError, or warn and return."""
        if self._fail:
            cause = loss if isinstance(loss, SkywalkerError) else None
            raise DataLossError(f"{loss}; {FAIL}=false goes on without") from cause
        _log.warning("%s", loss)
