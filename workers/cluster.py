"""What a node's settings say of its cluster: where to find it, and whether there is something for an agent to do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
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
    finds = config.silk or config.join or config.dns or config.consul
    return bool(finds or config.register or config.health_port)


def hears_of_nodes(config: Cluster) -> bool:
    """Whether other nodes may make themselves known by a :join."""
    return bool(config.join)


def check(config: Cluster) -> None:
    """Raise ConfigError for settings that are wrong, or wrong together. No node and no Consul is asked anything."""
    if config.advertise:
        with _blaming("--advertise"):
            Address.parse(config.advertise)
    chosen = {"--silk": config.silk, "--join": config.join, "--dns": config.dns, "--consul": config.consul}
    ways = [flag for flag, value in chosen.items() if value]
    if len(ways) > 1:
        raise ConfigError(f"{' and '.join(ways)}: a cluster is found in one way, so give one of them")
    _check_silk(config)
    if config.consul or config.register:
        _check_consul(config)
    if config.dns_server:
        _check_dns_server(config)
    for way in ways:
        with _blaming(way):
            _source(config)
    if config.register or config.health_port:
        _check_host("--health-bind", config.health_bind)


def be_agent(config: Cluster, member: Member, near: Address, last: Iterable[Member], channel: Channel, log: Log) -> int:
    """Run the agent of a node; return its exit status.

    `near` is where the node is reached from its own machine; `last` were in the last snapshot of the agent before it.
    """
    # Only here: it takes much that no worker needs.
    from workers.agent import Agent
    from workers.health import Health

    answers = config.register or config.health_port
    return Agent(
        member,
        _silk(config, member, last) if config.silk else _source(config),
        learning=bool(config.join),
        registration=(lambda health: _registration(config, member, health)) if config.register else None,
        health=Health(Address(config.health_bind, config.health_port), near) if answers else None,
        channel=channel,
        log=log,
        last=last,
    ).run()


def _source(config: Cluster) -> Source | None:
    if config.consul:
        from skywalker.discovery.consul import ConsulSource

        return ConsulSource(_access(config), config.service)
    if config.join:
        from skywalker.discovery.static import StaticSource

        return StaticSource.parse(config.join)
    if config.dns:
        from skywalker.discovery.url import source_of

        server = f"?server={config.dns_server}" if config.dns_server else ""
        return source_of(f"dns://{config.dns}{server}")
    return None


def _silk(config: Cluster, member: Member, last: Iterable[Member]) -> Source:
    from skywalker.discovery import silk_access
    from skywalker.discovery.silk_member import SilkMember
    from skywalker.silk import endpoints

    router = silk_access.listening(config.silk)
    pub = silk_access.listening(config.silk_pub) if config.silk_pub else endpoints.beside(router)
    access = silk_access.SilkAccess.parse(config.silk_join, config.silk_keys)
    known = [each.address for each in last if each.id != member.id]
    return SilkMember(member, router, pub, access, known)


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

    host = member.address.host if health.host in sockets.WILDCARDS else health.host
    service = Service(
        name=config.service,
        node_id=member.id,
        address=member.address,
        health_url=f"http://{Address(host, health.port)}/health",
        tags=("skywalker",),
        metadata={"name": member.name, "workers": str(member.workers)},
    )
    return Registration(_access(config), service)


@contextlib.contextmanager
def _blaming(flag: str) -> Iterator[None]:
    try:
        yield
    except SkywalkerError as error:
        raise ConfigError(f"{flag}: {error}") from error


def _check_silk(config: Cluster) -> None:
    from skywalker.discovery import silk, silk_access

    if not config.silk:
        told = {"--silk-pub": config.silk_pub, "--silk-join": config.silk_join, "--silk-keys": config.silk_keys}
        for flag in filter(told.get, told):
            raise ConfigError(f"{flag}: this node says nothing by Silk: give --silk too, where it is to listen")
        return
    with _blaming("--silk"):
        silk.require()
    for flag, text in {"--silk": config.silk, "--silk-pub": config.silk_pub}.items():
        if text:
            with _blaming(flag):
                host = silk_access.host_of(silk_access.listening(text))
            if host is not None:
                _check_host(flag, host)
    with _blaming("--silk-join"):
        silk_access.SilkAccess.parse(config.silk_join)
    if config.silk_keys:
        _check_keys(config.silk_keys)


def _check_keys(file: str) -> None:
    # Whether they are what they should be only ZeroMQ knows, which the agent alone may load.
    try:
        holds_some = b"secret-key" in Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"--silk-keys: {file} cannot be read: {error.strerror}") from error
    if not holds_some:
        raise ConfigError(f"--silk-keys: {file} holds no pair of keys: make one with skywalker silk keygen FILE")


def _check_consul(config: Cluster) -> None:
    from skywalker.discovery.consul_api import ConsulApi

    with _blaming("--consul-url"):
        access = _access(config)
    if config.consul_key and not config.consul_cert:
        raise ConfigError("--consul-key: a key is of use with its certificate only: give --consul-cert too")
    for flag, file in {"--consul-ca": config.consul_ca, "--consul-cert": config.consul_cert}.items():
        if file and not access.tls:
            raise ConfigError(f"{flag}: {access} is spoken to without TLS: give --consul-url=https://...")
    with _blaming("--consul" if config.consul else "--register"):
        ConsulApi(access)


def _check_dns_server(config: Cluster) -> None:
    from skywalker.discovery.url import dns_server

    if not config.dns:
        raise ConfigError("--dns-server: there is nothing to ask it: give --dns too, the name of the cluster")
    with _blaming("--dns-server"):
        dns_server(config.dns_server)


def _check_host(flag: str, host: str) -> None:
    # At any port: one that another has now the agent waits for.
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{flag}: {host} is no address of this machine: {reason}") from error
