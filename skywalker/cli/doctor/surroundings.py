"""What a node stands on: the clock, Consul, its certificate and state directory, and steering by the kernel."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skywalker import extras, reuseport
from skywalker.cli.doctor import user
from skywalker.cli.doctor.finding import Finding, weighed
from skywalker.cli.doctor.machine import Machine
from skywalker.cli.doctor.ports import doors
from skywalker.config import Config
from skywalker.discovery.consul import ConsulAccess, ConsulApi
from skywalker.errors import ConfigError, DiscoveryError, LocalProtocolError
from skywalker.state_path import usual_state_path
from skywalker.tls.certificate import Certificate

CONSUL_S: Final = 1.0
"""Seconds in which Consul must go on with its answer."""

DAY_S: Final = 86_400

SOON_DAYS: Final = 7
"""With fewer days left than these, a certificate should have been renewed."""


def clock(config: Config, machine: Machine) -> Iterator[Finding]:
    """Times of several nodes compare only if their clocks agree."""
    synchronised = machine.clock_is_synchronised()
    if synchronised is None:
        yield Finding("clock", "warn", "adjtimex may not be called here", "ask timedatectl on the machine itself")
        return
    yield weighed(
        "clock",
        synchronised,
        f"{'' if synchronised else 'not '}synchronised, says adjtimex",
        "run chrony or systemd-timesyncd, or times in logs and journals of several nodes do not compare",
    )


def consul(config: Config, machine: Machine) -> Iterator[Finding]:
    """Consul must be there if it is to be used."""
    cluster = config.cluster
    if not (cluster.consul or cluster.register):
        return
    if importlib.util.find_spec("consul") is None:
        yield Finding("consul", "fail", "python-consul2 is not installed", extras.command_for("consul"))
        return
    try:
        access = ConsulAccess.parse(
            cluster.consul_url,
            token=cluster.consul_token,
            ca_file=cluster.consul_ca,
            cert_file=cluster.consul_cert,
            key_file=cluster.consul_key,
        )
    except LocalProtocolError as error:
        yield Finding("consul", "fail", str(error), "correct consul_url")
        return
    try:
        has = _has_leader(access)
    except DiscoveryError as error:
        yield Finding("consul", "fail", str(error), "start Consul there, or correct consul_url and consul_token")
    else:
        yield weighed("consul", has, f"{access} answers, and has {'a' if has else 'no'} leader", "mend its cluster")


def _has_leader(access: ConsulAccess) -> bool:
    api = ConsulApi(access, answer_s=CONSUL_S)
    with api.errors():
        leader = api.status.leader()
        if not isinstance(leader, str):
            raise TypeError("it knows of no leaders")
        return leader != ""


def certificate(config: Config, machine: Machine) -> Iterator[Finding]:
    """What the node shows must be good, and still for a while."""
    if not config.tls_cert:
        return
    advice = "have a new one made, and put it in its place: a running node finds it there"
    try:
        shown = Certificate.read(config.tls_cert, config.tls_key)
    except ConfigError as error:
        yield Finding("certificate", "fail", str(error), "correct tls_cert and tls_key")
        return
    now = time.time()
    if fault := shown.fault(now):
        yield Finding("certificate", "fail", fault, advice)
        return
    days = int((shown.good_until - now) / DAY_S)
    found = f"of {', '.join(shown.names)}; good for {days} more days" if shown.names else f"good for {days} more days"
    yield weighed("certificate", days >= SOON_DAYS, found, advice)


def state_directory(config: Config, machine: Machine) -> Iterator[Finding]:
    """That of the user whom `serve` becomes must be there and writable, or be possible to make."""
    name = "state directory"
    try:
        heir = user.becomes(config, {host for _, host, _ in doors(config)})
    except ConfigError as error:
        yield Finding(name, "warn", f"not looked at: {error}", "set user, or run this as the user who runs the node")
        return
    except LocalProtocolError as error:
        yield Finding(name, "warn", f"not looked at: {error}", "correct silk")
        return
    home = Path(heir.pw_dir) if heir else None
    path = Path(config.state_dir) if config.state_dir else usual_state_path(config.bind, config.port, home)
    if path is None:
        who = f"{heir.pw_name}, whom serve becomes when root starts it," if heir else "this user"
        why = f"{who} has no home: give state_dir to keep one" if config.port else "the port may be any"
        yield Finding(name, "ok", f"none, since {why}")
        return
    first = next(each for each in (path, *path.absolute().parents) if each.exists() or each.is_symlink())
    writable = user.WRITE | user.ENTER
    can = first.is_dir() and user.may(heir, first, writable)
    if heir and not config.user and not can:
        heir, can = None, first.is_dir() and user.may(None, first, writable)  # so serve stays root
    who = f"by {heir.pw_name}, whom serve becomes" if heir else "by this user"
    what = f"{'can' if can else 'cannot'} be written {who}" if first.is_dir() else "is not a directory"
    whose = f"{path} {what}" if first == path else f"{path} is to be made, and {first} {what}"
    yield weighed(name, can, whose, "make one for the user that runs the node, or name another by state_dir", "fail")


def steering(config: Config, machine: Machine) -> Iterator[Finding]:
    """Try on two listeners whether a program can choose between them; without it clients cannot choose a worker."""
    advice = "none is needed: calls are passed on between workers instead, which costs some"
    try:
        steers = all(_second_of_two() for _ in range(4))
    except OSError as error:
        yield Finding("steering", "warn", f"the kernel takes no program: {error.strerror}", advice)
        return
    yield weighed("steering", steers, f"connections {'' if steers else 'do not '}reach the worker they want", advice)


def _second_of_two() -> bool:
    """Whether a connection comes to the second of two listeners, as a program says that always returns 1."""
    with contextlib.ExitStack() as stack:
        pair: list[socket.socket] = []
        for _ in range(2):
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(pair[0].getsockname() if pair else ("127.0.0.1", 0))
            listener.listen(1)
            listener.setblocking(False)
            pair.append(listener)
        reuseport.attach(pair[0], [(reuseport.RETURN_CONSTANT, 0, 0, 1)])
        stack.enter_context(socket.create_connection(pair[0].getsockname(), 1.0))
        try:
            stack.enter_context(pair[1].accept()[0])
        except BlockingIOError:
            return False
        return True
