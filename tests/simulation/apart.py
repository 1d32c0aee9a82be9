"""Something done in a process of its own: the core ends its process where it meets a bug, and a run hears of that."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import tempfile
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Died(Exception):
    """The process did, with these last words."""


def apart(call: Callable[[], T]) -> T:
    """Return what it returns. Raises Died if it ends its process, or raises."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as found:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.dup2(said.fileno(), 2)
                faulthandler.disable()  # pytest's writes elsewhere
                pickle.dump(call(), found)
                found.flush()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        if not status:
            found.seek(0)
            result: T = pickle.load(found)
            return result
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    number = os.waitstatus_to_exitcode(status)
    how = signal.Signals(-number).name if number < 0 else f"status {number}"
    raise Died(lines[0] if lines else f"it ended by {how} and said nothing")
