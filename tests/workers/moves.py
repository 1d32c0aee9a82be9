"""Real connections that move from worker to worker while they pipeline: nothing is lost, doubled or out of order.

python -m tests.workers.moves                # until 10,000 have moved
python -m tests.workers.moves --moves 1000 --workers 4
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Final

import skywalker
from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.node import STATE
from tests.workers.pairs import have_meet, moved
from tests.workers.wire_client import WireClient

CALLS: Final = 1200
"""Of each connection on its topic: 1,000 draw it, the others are made while it moves and after."""

EVERY: Final = 20
"""Pairs between two looks at how many have moved."""


def main() -> int:
    """Have as many move as are wanted; raises AssertionError where an answer is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.workers.moves", description=__doc__)
    parser.add_argument("--moves", type=int, default=10_000, help="how many connections move")
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    began = time.monotonic()
    with skywalker.embedded(workers=options.workers, admin=True, max_moves=100_000) as node:
        api = AdminApi(AdminAddress.parse(node.admin_address))
        for pair in itertools.count():
            with WireClient.open((node.host, node.port)) as sender, WireClient.open((node.host, node.port)) as taker:
                have_meet(sender, taker, f"pair{pair}", CALLS)
            if pair % EVERY == EVERY - 1 and moved(api.get(STATE)) >= options.moves:
                break
        count = moved(api.get(STATE))
    print(f"{count} connections of {2 * pair + 2} moved in {time.monotonic() - began:.0f} s; all {(pair + 1) * CALLS}")
    print("values came once, and in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
