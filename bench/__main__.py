"""`skywalker-bench`, or `python -m bench`: a load test of a node, and of what a node costs that has nothing to do."""

from __future__ import annotations

import sys

from bench.errors import BenchError
from skywalker import extras
from skywalker.errors import SkywalkerError


def main() -> None:
    """Run the command line of this process and end with its exit status."""
    try:
        from bench.command import bench
    except ModuleNotFoundError as error:
        sys.exit(f"skywalker-bench: {error.name} is not installed; {extras.command_for('bench')} brings it")
    try:
        bench.main(prog_name="skywalker-bench")
    except (BenchError, SkywalkerError) as error:
        sys.exit(f"skywalker-bench: {error}")


if __name__ == "__main__":
    main()
