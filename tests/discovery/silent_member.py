"""A member of a Silk cluster in a process of its own, which can die without a word: `python -m ... SEED PORT`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

from skywalker.silk import blocking


@contextlib.contextmanager
def silent_member(seed: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run one that has joined at `seed` for a `with` block, as a node of skywalker on this port of 10.0.0.1."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", __name__, seed, str(port)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"joined\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def main(seed: str, port: int) -> None:
    with blocking.Node(keepalive=0.1, junction={"address": "10.0.0.1", "port": port}) as node:
        node.join(seed)
        print("joined", flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
