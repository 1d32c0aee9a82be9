"""`python -m workers` is `skywalker serve`."""

from __future__ import annotations

import sys

from skywalker.cli.outcome import run
from workers.process.command import serve

if __name__ == "__main__":
    sys.exit(run(serve, sys.argv[1:], "python -m workers"))
