"""The agent of a node, made of what its settings ask for. Only the agent imports this: no worker needs so much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from skywalker import extras
from skywalker.address import Address
from skywalker.config import Cluster, Config
from skywalker.members import Member
from workers.agent.agent import Agent
from workers.agent.health import Health
from workers.agent.ping import Ping
from workers.engine import sockets
from workers.engine.credentials import Credentials
from workers.engine.machine import Machine
from workers.ipc.control import Channel
from workers.setup.cluster import consul_access, source, trust
from workers.setup.ground import Ground
from workers.stats.log import Log
from workers.stats.shared import SharedCounters

if TYPE_CHECKING:
    from skywalker.discovery.registration import Registration
    from skywalker.discovery.silk_member import SilkMember, Surroundings
    from workers.agent.admin.server import Admin


def assemble(
    config: Config,
    ground: Ground,
    credentials: Credentials | None,
    last: Iterable[Member],
    channel: Channel,
    log: Log,
    shared: SharedCounters,
    machine: Machine,
) -> Agent:
    """Return the agent of a node, which opens nothing before it runs.

    `last` were in the last snapshot of the agent before it.
    """
    cluster = config.cluster
    answers = cluster.register or cluster.health_port
    ping = Ping(ground.near, credentials and credentials.own)
    return Agent(
        ground.member,
        silk_source(cluster, ground.member, last) if cluster.silk else source(cluster),
        learning=bool(cluster.join),
        trust=trust(config),
        tls=credentials and credentials.client,
        registration=(lambda health: _registration(cluster, ground.member, health)) if cluster.register else None,
        health=Health(Address(config.health_host, cluster.health_port), ping) if answers else None,
        admin=_admin(config, ground, ping, shared, log, credentials) if config.admin else None,
        channel=channel,
        log=log,
        machine=machine,
        last=last,
        alive=lambda: shared.agent_lives(machine.monotonic()),
    )


def _admin(
    config: Config,
    ground: Ground,
    ping: Ping,
    shared: SharedCounters,
    log: Log,
    credentials: Credentials | None,
) -> Admin | None:
    missing = extras.missing(extras.ADMIN)
    if not missing:
        try:
            from workers.agent.admin.server import Admin
        except ImportError as error:  # what is there lacks something, or is broken
            missing = [error.name or str(error)]
    if missing:
        log.warning("no-admin", missing=" ".join(missing), install=extras.command_for("admin"))
        if ground.admin is not None:
            ground.admin.close()
        return None
    doors = {door: str(Address(*address)) for door, address in ground.addresses.items()}
    tls = credentials and credentials.server
    bind = config.admin_host, config.admin_port
    return Admin(bind, ground.admin, ground.member, ping, doors, shared, log, tls=tls, access=config.access)


def silk_source(
    config: Cluster, member: Member, last: Iterable[Member], around: Surroundings | None = None
) -> SilkMember:
    """Return what finds others by Silk, and is found by them; `around` is for tests."""
    from skywalker.discovery import silk
    from skywalker.discovery.silk_member import SURROUNDINGS, SilkMember
    from skywalker.silk import endpoints

    router = silk.listening(config.silk)
    pub = silk.listening(config.silk_pub) if config.silk_pub else endpoints.beside(router)
    access = silk.SilkAccess.parse(config.silk_join, config.silk_keys)
    known = [each.address for each in last if each.id != member.id]
    return SilkMember(member, router, pub, access, known, around or SURROUNDINGS)


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
    return Registration(consul_access(config), service)
