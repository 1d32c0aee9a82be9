"""Who is in the cluster of the node that runs on this machine, and who would like to be, as the node itself says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from skywalker.access.proof import Secrets
from skywalker.access.trust import ADVICE, Trust
from skywalker.address import Address
from skywalker.cli import local_nodes
from skywalker.cli.admin_api import AdminAddress, AdminApi, NoAnswer, reading
from skywalker.cli.credentials import TOKEN, Credentials
from skywalker.cli.doctor.finding import Finding, weighed
from skywalker.cli.doctor.machine import Machine
from skywalker.cli.token import SHORTEST
from skywalker.config import Config
from skywalker.errors import ConfigError, RequestError, SkywalkerError
from skywalker.limits import DEFAULT_HOST
from skywalker.tls.certificate import Certificate

ANSWER_S: Final = 1.0
"""Seconds for the node to answer."""


def secret(config: Config, machine: Machine) -> Iterator[Finding]:
    """What nodes prove themselves by must be hard to guess, since whoever has heard a proof may try, and never sent."""
    cluster = config.cluster
    if cluster.secret_in_clear and cluster.secret:
        advice = "take secret_in_clear away once no node is of the version before, and give all nodes another secret"
        yield Finding("secret", "warn", "whoever poses as an old node gets cluster.secret in clear", advice)
    for each in Secrets(cluster.secret).words:
        advice = "have one made by skywalker token new, and give both to all nodes while it replaces the other"
        long = len(each) >= SHORTEST
        yield weighed("secret", long, f"of {len(each)} characters{'' if long else ', which can be guessed'}", advice)


def proof(config: Config, machine: Machine) -> Iterator[Finding]:
    """Without a secret it is the node's own certificate that has to say that it is one."""
    principals = [each for each in config.access.principals if each.node] if config.access is not None else []
    if config.cluster.secret or not config.tls_cert or not any(each.certificates for each in principals):
        return
    try:
        names = Certificate.read(config.tls_cert, config.tls_key).names
    except ConfigError:
        return  # which is told of as the certificate's trouble
    known = Trust(config.access).knows(names)
    advice = "have it made with a name that [access] gives as certificate to a principal with node = true"
    found = f"the node's certificate is of {', '.join(names) or 'nobody'}"
    yield weighed("proof", known, f"{found}, {'a node' if known else 'which is not a node here'}", advice, "fail")


def cluster(config: Config, machine: Machine) -> Iterator[Finding]:
    """All whom the node finds must have proved to be nodes of its cluster."""
    known = config.cluster
    if not (known.silk or known.join or known.dns or known.consul) or not (config.admin and config.admin_port):
        return
    host = {"0.0.0.0": DEFAULT_HOST, "::": "::1"}.get(config.admin_host, config.admin_host)
    address = AdminAddress(Address(host, config.admin_port), bool(config.tls_cert))
    pid = machine.node(config)
    if pid is None or not local_nodes.serves(pid, address.at, machine.proc):
        yield Finding("cluster", "ok", "not looked at: no node with these settings runs here, as far as one may see")
        return
    shown = Credentials(os.environ.get(TOKEN) or None, config.tls_ca, config.tls_cert, config.tls_key)
    try:
        ring = AdminApi(address, shown, ANSWER_S).get("/api/ring")
        with reading(address):
            members, unproven = len(ring["members"]), {each["address"]: each["reason"] for each in ring["unproven"]}
    except NoAnswer as error:
        yield Finding("cluster", "warn", str(error), "the log of the node's agent may say why")
    except RequestError as error:
        yield Finding("cluster", "warn", str(error), f"give by {TOKEN} the token of one who has admin = true")
    except SkywalkerError as error:
        yield Finding("cluster", "warn", str(error))
    else:
        for at, reason in unproven.items():
            yield Finding("cluster", "fail", f"{at}: {reason}", ADVICE)
        if not unproven:
            yield Finding(
                "cluster", "ok", f"{members} {'nodes' if members > 1 else 'node'} in the ring, and no stranger"
            )
