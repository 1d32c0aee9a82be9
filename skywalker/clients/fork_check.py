"""The id of this process, by which a client knows that it is the copy that a fork has made.

The interpreter tells of forks, so that every call may ask without a system call.
"""

from __future__ import annotations

import os


class _Process:
    def __init__(self) -> None:
        self.note()
        os.register_at_fork(after_in_child=self.note)

    def note(self) -> None:
        self.pid = os.getpid()


_this = _Process()


def pid() -> int:
    """Return what os.getpid() does."""
    return _this.pid
