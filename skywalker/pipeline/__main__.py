"""`python -m skywalker.pipeline`: the commands of `skywalker pipeline`, and what a script for spark-submit calls."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and end with its exit status."""
    from skywalker.cli.outcome import run
    from skywalker.cli.pipeline.command import pipeline

    sys.exit(run(pipeline, sys.argv[1:], "python -m skywalker.pipeline"))


if __name__ == "__main__":
    main()
