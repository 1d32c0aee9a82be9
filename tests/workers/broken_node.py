"""A node whose worker 1 fails as it boots. A program of its own: the tests run it in place of `python -m workers`."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from workers.worker.worker import Worker

as_ever = Worker.run


def run(self: Worker) -> int:
    if self._node.slot == 1:
        raise OSError("no disk")
    return as_ever(self)


if __name__ == "__main__":
    Worker.run = run  # type: ignore[method-assign]  # the fault enters here
    runpy.run_module("workers", run_name="__main__")
