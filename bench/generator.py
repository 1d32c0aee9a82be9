"""A process that makes the calls of a plan: `python -m bench.generator`, started by bench.measure.

It reads a Plan from standard input, connects, answers READY, reads a Window, works, and writes
its Tally. It ends by itself: with the window, when standard input ends first, or at what is wrong.
"""

from __future__ import annotations

import resource
import sys

from bench import closed_loop, lockstep
from bench.connections import Connections
from bench.errors import BenchError
from bench.plan import READY, Mode, Plan, Tally, Window


def work(plan: Plan, connections: Connections, window: Window) -> Tally:
    """Make the calls of a plan whose connections are open. Raises BenchError."""
    run = lockstep.run if plan.mode == Mode.LOCKSTEP else closed_loop.run
    return run(connections.receivers, connections.senders, window, plan.patience_s)


def main() -> int:
    """Do what standard input says; return the exit status."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    line = sys.stdin.readline()
    if not line:
        return 0  # whoever started this is gone
    plan = Plan.from_json(line)
    try:
        with Connections() as connections:
            connections.open(plan)
            print(READY, flush=True)
            line = sys.stdin.readline()
            if line:
                print(work(plan, connections, Window.from_json(line)).to_json(), flush=True)
    except BenchError as error:
        print(f"generator: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
