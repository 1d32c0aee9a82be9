"""What is wrong for a query, such as an option, a schema or data that is lost, reaches who runs it as one sentence.

Spark plans in processes of its own, and shows what goes wrong there with the way through its code and ours.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from skywalker.errors import ConfigError, SkywalkerError

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


@contextlib.contextmanager
def told_plainly() -> Iterator[None]:
    """Have Spark show of an error of ours what it says, and no more."""
    try:
        yield
    except SkywalkerError:
        # Of this process alone, which ends with the error.
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def stream(make: Callable[[], DataSourceStreamReader]) -> DataSourceStreamReader:
    """Return the stream's reader, or one that raises what was wrong as soon as it is asked for anything.

    Spark 4.3 fails on its own where no reader was made, and shows that error instead.
    """
    try:
        return make()
    except ConfigError as error:
        return _Refused(error)


class _Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, error: ConfigError) -> None:
        self._error = error

    @told_plainly()
    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._error

    initialOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = latestOffset = partitions = read = _refuse
