"""Calls that block, made aside of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.helpers import time_factor


class AsideCall:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:
            self._error = error

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def result(self, within: float = 10.0) -> Any:
        """Return what it has returned, or raise what it has raised."""
        self._thread.join(within * time_factor())
        assert self.is_over, f"the call has not ended within {within} s"
        if self._error is not None:
            raise self._error
        return self._result
