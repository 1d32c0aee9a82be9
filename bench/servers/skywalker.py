"""skywalker: a node of one worker, or of several with its pub/sub door open."""

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

    with embedded(workers=1) as node:
        yield Running(node.host, node.port, node.pid, version(1))


@contextlib.contextmanager
def started_pubsub(workers: int) -> Iterator[Running]:
    """Run a node, to be spoken to at its pub/sub door. Raises StartError."""
    from skywalker.address import Address
    from skywalker.embedding import embedded

    with embedded(workers=workers, pubsub=True) as node:
        door = Address.parse(node.pubsub_address)
        yield Running(door.host, door.port, node.pid, version(workers))


def version(workers: int) -> str:
    """Return what a node of so many workers is, in words."""
    spec = importlib.util.find_spec("workers.doors.junction.session")
    plain = spec is None or (spec.origin or "").endswith(".py")
    count = f"{workers} worker{'s' if workers > 1 else ''}"
    return f"skywalker {skywalker.__version__}, {count}, {'not compiled' if plain else 'compiled'}"


PEER: Final = Peer("skywalker", started, Pair.encode)
