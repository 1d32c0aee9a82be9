"""What a node's settings say of its cluster: where to find it, and whether there is something for an agent to do."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skywalker.address import Address
from skywalker.config import Cluster
from skywalker.errors import ConfigError, SkywalkerError
from skywalker.members import Member
from workers import sockets
from workers.control import Channel
from workers.log import Log

if TYPE_CHECKING:
    from skywalker.discovery.consul_access import ConsulAccess
    from skywalker.discovery.registration import Registration
    from skywalker.discovery.source import Source


def needs_agent(config: Cluster) -> bool:
    """Whether the node is to find others, be found, or answer health checks."""
    return bool(config.join or config.dns or config.consul or config.register or config.health_port)


def hears_of_nodes(config: Cluster) -> bool:
    """Whether other nodes may make themselves known by a :join."""
    return bool(config.join)


def check(config: Cluster) -> None:
    """Raise ConfigError for settings that are wrong, or wrong together. Nothing is asked over a network."""
    chosen = {"--join": config.join, "--dns": config.dns, "--consul": config.consul}
    ways = [flag for flag, value in chosen.items() if value]
    if len(ways) > 1:
        raise ConfigError(f"{' and '.join(ways)}: a cluster is found in one way, so give one of them")
    try:
        _source(config)
        if config.register:
            _access(config)
    except SkywalkerError as error:
        raise ConfigError(f"{ways[0] if ways else '--register'}: {error}") from error


def be_agent(config: Cluster, member: Member, near: Address, last: Iterable[Member], channel: Channel, log: Log) -> int:
    """Run the agent of a node; return its exit status.

    `near` is where the node is reached from its own machine; `last` were in the last snapshot of the agent before it.
    """
    # Only here: it takes much that no worker needs.
    from workers.agent import Agent
    from workers.health import Health

    port = config.health_port or (_free_port(config.health_bind) if config.register else 0)
    health = Address(config.health_bind, port)
    return Agent(
        member,
        _source(config),
        learning=bool(config.join),
        registration=_registration(config, member, health) if config.register else None,
        health=Health(health, near) if port else None,
        channel=channel,
        log=log,
        last=last,
    ).run()


def _source(config: Cluster) -> Source | None:
    if config.consul:
        from skywalker.discovery.consul import ConsulSource

        return ConsulSource(_access(config), config.service)
    if config.join or config.dns:
        from skywalker.discovery.url import source_of

        server = f"?server={config.dns_server}" if config.dns_server else ""
        return source_of(config.join or f"dns://{config.dns}{server}")
    return None


def _access(config: Cluster) -> ConsulAccess:
    from skywalker.discovery.consul_access import ConsulAccess

    return ConsulAccess.parse(
        config.consul_url,
        token=config.consul_token,
        ca_file=config.consul_ca,
        cert_file=config.consul_cert,
        key_file=config.consul_key,
    )


def _registration(config: Cluster, member: Member, health: Address) -> Registration:
    from skywalker.discovery.registration import Registration, Service

    host = member.address.host if config.health_bind in sockets.WILDCARDS else health.host
    service = Service(
        name=config.service,
        node_id=member.id,
        address=member.address,
        health_url=f"http://{Address(host, health.port)}/health",
        tags=("skywalker",),
        metadata={"name": member.name, "workers": str(member.workers)},
    )
    return Registration(_access(config), service)


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
