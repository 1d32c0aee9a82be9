"""A node whose worker 1 fails as it boots. A program of its own: the tests run it in place of `python -m workers`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from skywalker import config  # found only now
from workers import supervisor
from workers.worker import Worker


def run(worker: Worker) -> int:
    if worker._node.slot == 1:
        raise OSError("no disk")
    return run_as_ever(worker)


if __name__ == "__main__":
    run_as_ever = Worker.run
    Worker.run = run  # type: ignore[method-assign]  # the fault enters here
    flags = dict(argument.removeprefix("--").replace("-", "_").split("=", 1) for argument in sys.argv[1:])
    flags["drain_timeout_s"] = flags.pop("drain_timeout")
    parent_fd = int(flags.pop("parent_fd"))
    sys.exit(supervisor.run(config.load(flags), parent_fd))
