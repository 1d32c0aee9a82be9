"""skywalker: a node of one worker."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Final

import skywalker
from bench.lanes import Pair
from bench.servers.peer import Peer, Running


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run a node. Raises StartError."""
    from skywalker.embedding import embedded

    spec = importlib.util.find_spec("workers.session")
    plain = spec is None or (spec.origin or "").endswith(".py")
    version = f"skywalker {skywalker.__version__}, 1 worker, {'not compiled' if plain else 'compiled'}"
    with embedded(workers=1) as node:
        yield Running(node.host, node.port, node.pid, version)


PEER: Final = Peer("skywalker", started, Pair.encode)
