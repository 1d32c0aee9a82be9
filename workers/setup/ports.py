"""Whether each door of a node has a port of its own."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from skywalker.config import BY_KEY, Config
from skywalker.errors import ConfigError
from skywalker.limits import DEFAULT_HOST
from workers.engine.sockets import WILDCARDS


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Where a door is to be, and the setting that says at which port."""

    name: str
    key: str
    host: str
    port: int

    @property
    def is_chosen(self) -> bool:
        return self.port != BY_KEY[self.key].default

    def meets(self, other: _Place) -> bool:
        """Whether only one of the two can be had."""
        if self.port != other.port or not self.port:
            return False
        one, two = _numeric(self.host), _numeric(other.host)
        return one == two or bool(WILDCARDS & {one, two} and (":" in one) == (":" in two))


def check(config: Config) -> None:
    """Raise ConfigError if two doors are to listen at the same place."""
    for one, two in itertools.combinations(_places(config), 2):
        if one.meets(two):
            told, other = (two, one) if two.is_chosen else (one, two)
            raise ConfigError(f"{told.key}: {told.port} is the port of {other.name}; {told.name} needs its own")


def _places(config: Config) -> Iterator[_Place]:
    yield _Place("the MessagePack dialect", "port", config.bind, config.port)
    if config.pubsub:
        host, port = config.pubsub_address
        yield _Place("pub/sub", "pubsub_port" if port == config.pubsub_port else "pubsub_bind", host, port)
    if config.admin:
        yield _Place("the admin server", "admin_port", config.admin_host, config.admin_port)
    if config.cluster.health_port:
        yield _Place("the health check", "health_port", config.health_host, config.cluster.health_port)


def _numeric(host: str) -> str:
    return DEFAULT_HOST if host == "localhost" else host
