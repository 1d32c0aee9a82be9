"""A node with a fault in its workers. A program of its own: the tests run it in place of `python -m workers`.

A worker that starts while the file in FAULTY_NODE exists fails; if that says "stop", it stands still instead, as at
SIGSTOP. The call `[":hang", id]` never ends. One that is replaced notices that
FAULTY_NODE_LATE seconds late.
"""

import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from skywalker.wire import values
from workers.doors.junction import methods
from workers.worker.worker import Worker

as_ever = Worker.run
be_replaced = Worker._be_replaced


def run(self: Worker) -> int:
    fault = Path(os.environ.get("FAULTY_NODE", "/no fault"))
    if fault.exists():
        if fault.read_text() != "stop":
            raise OSError("no disk")
        os.kill(os.getpid(), signal.SIGSTOP)
    return as_ever(self)


def be_replaced_late(self: Worker) -> None:
    time.sleep(float(os.environ.get("FAULTY_NODE_LATE", "0")))
    be_replaced(self)


def hang_in_here(session: Any, frame: Any) -> None:
    while True:
        pass


if __name__ == "__main__":
    # The faults enter here.
    Worker.run = run  # type: ignore[method-assign]
    Worker._be_replaced = be_replaced_late  # type: ignore[method-assign]
    methods.METHODS[values.pack(":hang")] = hang_in_here  # type: ignore[index]
    runpy.run_module("workers", run_name="__main__")
