"""Nodes that speak pub/sub, one or a cluster of them, as so many workers: a place each to connect to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.workers.pubsub_client import PubSubClient
from tests.workers.wire_client import Address, WireClient


class Place(NamedTuple):
    """One worker, and where to connect to it."""

    pubsub: Address
    junction: Address
    worker: int
    workers: int


class Bus:
    """Workers that are one bus."""

    def __init__(self, places: list[Place], owner: Callable[[str], int]) -> None:
        self.places = places
        self.owner = owner
        self._topics = itertools.count()

    def __len__(self) -> int:
        return len(self.places)

    def topic(self, owner: int | None = None) -> str:
        """Return a topic that was never used, and that this place owns if one is named."""
        return next(topic for n in self._topics if owner in (None, self.owner(topic := f"topic-{n}")))

    def topics(self, count: int) -> list[str]:
        """Return topics that were never used, owned by all places in turn."""
        return [self.topic(number % len(self)) for number in range(count)]


class Doors:
    """Connections to a bus that are closed together."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._open: list[PubSubClient | WireClient] = []

    def pubsub(self, place: int = 0, *, receive_buffer: int | None = None) -> PubSubClient:
        """Return a new connection to the pub/sub door of a place."""
        at = self._bus.places[place]
        client = PubSubClient.open(at.pubsub, steer=(at.worker, at.workers), receive_buffer=receive_buffer)
        self._open.append(client)
        return client

    def everywhere(self) -> list[PubSubClient]:
        """Return one to each place."""
        return [self.pubsub(place) for place in range(len(self._bus))]

    def junction(self, place: int = 0) -> WireClient:
        """Return a new connection to the MessagePack door of a place."""
        at = self._bus.places[place]
        client = WireClient(PubSubClient.open(at.junction, steer=(at.worker, at.workers)).socket)
        self._open.append(client)
        assert client.worker() == at.worker
        return client

    def close(self) -> None:
        """Close them all, so that no port of theirs stays taken."""
        for client in self._open:
            if client.socket.fileno() >= 0:
                client.reset()


@contextmanager
def doors_of(bus: Bus) -> Iterator[Doors]:
    """Yield a maker of connections, and close them at the end."""
    doors = Doors(bus)
    try:
        yield doors
    finally:
        doors.close()
