"""The nodes and who of them owns what, as far as a client needs it: from a node's greeting, or from all of `:nodes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from skywalker.address import Address
from skywalker.members import Place, Snapshot
from skywalker.ring import Ring


@dataclass(frozen=True, slots=True)
class Greeting:
    """What counts here of a node's answer to :hello."""

    node: str
    worker: int
    workers: int
    steering: bool
    version: str  # of the ring that the node uses; empty if it does not say, being older than clusters
    ring: Ring[Place]  # of its own tokens only

    @classmethod
    def parse(cls, answer: Any) -> Greeting | None:
        """Return None for the answer of something else than our nodes."""
        match answer:
            case {"node": str(node), "worker": int(worker), "workers": int(workers), "tokens": dict(tokens)}:
                version = answer.get("ring", "")
                try:
                    if tokens.keys() == set(range(workers)) and 0 <= worker < workers and isinstance(version, str):
                        ring = Ring({Place(node, each): tokens[each] for each in tokens})
                        return cls(node, worker, workers, answer.get("steering") is True, version, ring)
                except (TypeError, ValueError):
                    pass
        return None

    @property
    def place(self) -> Place:
        """The worker that answered."""
        return Place(self.node, self.worker)


@dataclass(frozen=True, slots=True)
class Node:
    """What is to be known of a node to connect to its workers."""

    workers: int
    steering: bool  # whether the source port of a connection chooses the worker
    address: Address | None = None  # None if it is only known where the main line met it


@dataclass(frozen=True, slots=True)
class View:
    """Nodes by id, and the ring of their tokens."""

    version: str
    nodes: Mapping[str, Node]
    ring: Ring[Place]
    owners: frozenset[Place]

    @classmethod
    def alone(cls, greeting: Greeting) -> Self:
        """Return the view of a node that is in no cluster."""
        node = Node(greeting.workers, greeting.steering)
        return cls(greeting.version, {greeting.node: node}, greeting.ring, frozenset(greeting.ring.shares()))

    @classmethod
    def of(cls, snapshot: Snapshot, version: str) -> Self:
        """Return the view that a node told, by the version that the node gave it."""
        nodes = {each.id: Node(each.workers, each.steering, each.address) for each in snapshot}
        return cls(version, nodes, snapshot.ring, frozenset(snapshot.ring.shares()))

    @property
    def is_lone(self) -> bool:
        """Whether there is one node only."""
        return len(self.nodes) == 1
