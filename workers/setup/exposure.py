"""Whether strangers could do what they like at a node, although nobody has asked for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skywalker.access.access import Access
from skywalker.access.proof import MAX_SECRETS, Secrets
from skywalker.config import Config, is_loopback
from skywalker.errors import ConfigError
from workers.setup import cluster
from workers.setup.ground import ADMIN, JUNCTION, PUBSUB

KEYS: Final = {JUNCTION: "bind", PUBSUB: "pubsub_bind", ADMIN: "admin_bind"}


def check(config: Config, addresses: Mapping[str, tuple[str, int]] | None = None) -> None:
    """Raise ConfigError if they could, or if it names files or people that are of no use as the settings are.

    `addresses` say where the node listens, by door, if that is not what the settings say. They are given for a node
    that is to run, whose settings these are, all of them.
    """
    for key in ("tls_key", "tls_ca"):
        if getattr(config, key) and not config.tls_cert:
            raise ConfigError(f"{key}: this node speaks no TLS: give tls_cert too, the file with its certificate")
    _check_principals(config)
    _check_secret(config.cluster.secret)
    if config.access is not None:
        _check_nodes(config, config.access, runs=addresses is not None)
    if config.open:
        return
    if config.unix and config.certifies:
        raise ConfigError(
            "unix: nobody shows a certificate there, so every user of this machine could do everything: say in "
            "[access] who may, or give --open if all of them are to be trusted"
        )
    if config.access is None and not config.certifies:
        hosts = _hosts(config) | {door: host for door, (host, _) in (addresses or {}).items()}
        for door, host in hosts.items():
            if not is_loopback(host):
                raise ConfigError(
                    f"{KEYS[door]}: whoever gets to {host} could do everything there: say in [access] who may, have "
                    "clients show certificates (tls_cert and tls_ca), or give --open if all who get there are to be "
                    "trusted"
                )
    if not config.cluster.silk_keys:
        for key, host in cluster.silk_hosts(config.cluster).items():
            if not is_loopback(host):
                raise ConfigError(
                    f"{key}: whoever gets to {host} could be a node there: give --silk-keys, or --open if all who get "
                    "there are to be trusted"
                )


def is_local(config: Config) -> bool:
    """Whether only this machine reaches any door of the node."""
    hosts = [*_hosts(config).values(), *cluster.silk_hosts(config.cluster).values()]
    if config.cluster.health_port or config.cluster.register:
        hosts.append(config.health_host)
    return all(map(is_loopback, hosts))


def _check_principals(config: Config) -> None:
    """Raise ConfigError if the file names somebody who can nowhere show who they are."""
    for each in config.access.principals if config.access is not None else ():
        if each.hashes or each.networks:
            continue
        lacks = ["tls_cert and tls_ca, since nobody is asked for a certificate"] if each.certificates else []
        lacks += ["unix, since nobody comes in by a socket that tells their user"] if each.users else []
        if (each.certificates and config.tls_cert and config.tls_ca) or (each.users and config.unix) or not lacks:
            continue
        raise ConfigError(f"access.{each.name}: nobody can show that they are that: give {', or '.join(lacks)}")


def _check_secret(text: str) -> None:
    """Raise ConfigError if the secret of the cluster is none, or very many."""
    words = Secrets(text).words
    if (text and not words) or len(words) > MAX_SECRETS:
        raise ConfigError(
            f"cluster.secret: it is {len(words)} words: give one, or while it is replaced the new one and the old, "
            "with a space between them"
        )


def _check_nodes(config: Config, access: Access, *, runs: bool) -> None:
    """Raise ConfigError if nodes of the cluster cannot prove to each other that they are, or whoever comes names them.

    Where access is limited, that is: elsewhere whoever gets to a node may be one. The secret is told apart from a file
    of settings, so only of a node that `runs` is it known whether it has one.
    """
    known = config.cluster
    for secret in Secrets(known.secret).words:
        principal = access.by_token(secret)
        if principal is None or not principal.node:
            raise ConfigError(
                "cluster.secret: whoever proves to know it is nobody here: give its hash, by skywalker token hash, as "
                "token of a principal with node = true in [access]"
            )
    by_certificate = config.tls_cert and config.tls_ca and any(e.node and e.certificates for e in access.principals)
    has_proof = known.secret or by_certificate or not (runs or all(not each.node for each in access.principals))
    if cluster.finds_others(known) and not has_proof:
        raise ConfigError(
            "access: no other node of the cluster could prove that it is one: give all of them the same "
            "cluster.secret, or certificates with a name, and in [access] a principal with node = true, known by that"
        )
    if not known.silk_keys and cluster.silk_hosts(known):
        raise ConfigError(
            "silk: whoever gets to that port could name nodes there, and read what the others say of themselves, while "
            "[access] keeps them out elsewhere: give --silk-keys, or an ipc:// endpoint"
        )


def _hosts(config: Config) -> dict[str, str]:
    hosts = {JUNCTION: config.bind}
    if config.pubsub:
        hosts[PUBSUB] = config.pubsub_address[0]
    if config.admin:
        hosts[ADMIN] = config.admin_host
    return hosts
