"""What a node's settings say of its cluster: where to find it, and whether there is something for an agent to do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.config import Cluster, Config
from skywalker.errors import ConfigError, SkywalkerError
from workers.engine import sockets

if TYPE_CHECKING:
    from skywalker.discovery.consul import ConsulAccess
    from skywalker.discovery.source import Source


def needs_agent(config: Config) -> bool:
    """Whether the node is to find others, be found, answer health checks, or show its metrics."""
    cluster = config.cluster
    return bool(finds_others(cluster) or cluster.register or cluster.health_port or config.admin)


def finds_others(config: Cluster) -> bool:
    """Whether the node is to be one of several."""
    return bool(config.silk or config.join or config.dns or config.consul)


def hears_of_nodes(config: Cluster) -> bool:
    """Whether other nodes may make themselves known by a :join."""
    return bool(config.join)


def registered_as(config: Cluster) -> tuple[str, str] | None:
    """Return at which Consul the node is to be registered, and as what; None if nowhere."""
    return (config.consul_url, config.service) if config.register else None


def check(config: Cluster) -> None:
    """Raise ConfigError for settings that are wrong, or wrong together, or not of this machine."""
    check_settings(config)
    if fault := too_many_ways(config):
        raise ConfigError(fault)
    # Addresses to listen at come last: the settings are right otherwise.
    if config.health_bind and (config.register or config.health_port):
        _check_host("--health-bind", config.health_bind)
    for key, host in silk_hosts(config).items():
        _check_host(_flag(key), host)


def too_many_ways(config: Cluster) -> str:
    """Return what is wrong if the cluster is to be found in several ways; empty if it is not."""
    ways = [_flag(key) for key in ("silk", "join", "dns", "consul") if getattr(config, key)]
    return f"{' and '.join(ways)}: a cluster is found in one way, so give one of them" if len(ways) > 1 else ""


def check_settings(config: Cluster) -> None:
    """Raise ConfigError for a way to find the cluster whose settings are wrong, or wrong together.

    No socket is opened, and nobody is asked. Whether it is the only way is not looked at.
    """
    if config.advertise:
        with _blaming("--advertise"):
            if Address.parse(config.advertise).host in sockets.WILDCARDS:
                raise ConfigError(
                    f"{config.advertise} is nowhere in particular: say the address at which others reach it"
                )
    _check_silk(config)
    if config.consul or config.register:
        _check_consul(config)
    if config.dns_server:
        _check_dns_server(config)
    for key, make in _SOURCES.items():
        if getattr(config, key):
            with _blaming(_flag(key)):
                make(config)


def silk_hosts(config: Cluster) -> dict[str, str]:
    """Return where this node listens for Silk by TCP: hosts, by key. Raises ConfigError for what is no place to."""
    from skywalker.discovery import silk

    hosts = {}
    for key, text in {"silk": config.silk, "silk_pub": config.silk_pub}.items():
        if text:
            with _blaming(_flag(key)):
                host = silk.host_of(silk.listening(text))
            if host is not None:
                hosts[key] = host
    return hosts


def trust(config: Config) -> Trust:
    """Return by what this node and the others of its cluster know each other."""
    cluster = config.cluster
    return Trust(config.access, cluster.secret, in_clear=cluster.secret_in_clear)


def source(config: Cluster) -> Source | None:
    """Return where nodes are found, other than by Silk; None if nowhere."""
    assert not too_many_ways(config), "check() has passed"
    return next((make(config) for key, make in _SOURCES.items() if getattr(config, key)), None)


def _list(config: Cluster) -> Source:
    from skywalker.discovery.source import StaticSource

    return StaticSource.parse(config.join)


def _dns(config: Cluster) -> Source:
    from skywalker.discovery.url import source_of

    server = f"?server={config.dns_server}" if config.dns_server else ""
    return source_of(f"dns://{config.dns}{server}")


def _consul(config: Cluster) -> Source:
    from skywalker.discovery.consul import ConsulSource

    return ConsulSource(consul_access(config), config.service)


_SOURCES: Final[dict[str, Callable[[Cluster], Source]]] = {"join": _list, "dns": _dns, "consul": _consul}
"""What finds the nodes of a cluster, by the setting that asks for it; Silk is a matter of its own."""


def consul_access(config: Cluster) -> ConsulAccess:
    """Return where Consul is, and by what it knows this node. Raises LocalProtocolError."""
    from skywalker.discovery.consul import ConsulAccess

    return ConsulAccess.parse(
        config.consul_url,
        token=config.consul_token,
        ca_file=config.consul_ca,
        cert_file=config.consul_cert,
        key_file=config.consul_key,
    )


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


@contextlib.contextmanager
def _blaming(flag: str) -> Iterator[None]:
    try:
        yield
    except SkywalkerError as error:
        raise ConfigError(f"{flag}: {error}") from error


def _check_silk(config: Cluster) -> None:
    from skywalker.discovery import silk

    if not config.silk:
        told = {"--silk-pub": config.silk_pub, "--silk-join": config.silk_join, "--silk-keys": config.silk_keys}
        for flag in filter(told.get, told):
            raise ConfigError(f"{flag}: this node says nothing by Silk: give --silk too, where it is to listen")
        return
    with _blaming("--silk"):
        silk.require()
    silk_hosts(config)
    with _blaming("--silk-join"):
        silk.SilkAccess.parse(config.silk_join)
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
    from skywalker.discovery.consul import ConsulApi

    with _blaming("--consul-url"):
        access = consul_access(config)
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
        raise ConfigError(f"{flag}: {host} is not an address of this machine: {reason}") from error
