"""A node with a fault in its workers. A program of its own: the tests run it in place of `python -m workers`.

A worker that starts while the file in FAULTY_NODE exists fails. The call `[":hang", id]` never ends, and of
`[":break", id]` the core says that it has met a bug.
"""

import os
import runpy
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from skywalker.wire import values
from workers.doors.junction import methods
from workers.worker.worker import Worker

as_ever = Worker.run


def run(self: Worker) -> int:
    if Path(os.environ.get("FAULTY_NODE", "/no fault")).exists():
        raise OSError("no disk")
    return as_ever(self)


def hang_in_here(session: Any, frame: Any) -> None:
    while True:
        pass


def break_the_core(session: Any, frame: Any) -> None:
    session.core.change(-1, 0)  # which it does not watch


if __name__ == "__main__":
    # The faults enter here.
    Worker.run = run  # type: ignore[method-assign]
    methods.METHODS[values.pack(":hang")] = hang_in_here  # type: ignore[index]
    methods.METHODS[values.pack(":break")] = break_the_core  # type: ignore[index]
    runpy.run_module("workers", run_name="__main__")
