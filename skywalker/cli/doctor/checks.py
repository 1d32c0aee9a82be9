"""The checks: what is installed, what room there is, who has the ports, what a node stands on, and its cluster."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import skywalker
from skywalker import build, extras, processes, reuseport
from skywalker import memory as bounds
from skywalker.access.proof import Secrets
from skywalker.access.trust import ADVICE, Trust
from skywalker.address import Address
from skywalker.cli import local_nodes
from skywalker.cli.admin_api import AdminAddress, AdminApi, NoAnswer, reading
from skywalker.cli.credentials import TOKEN, Credentials
from skywalker.cli.doctor.finding import Finding, Level, weighed
from skywalker.cli.doctor.machine import ADDRESS_SPACE, DATA, ENTER, FILES, WRITE, Machine, becomes, may, workers
from skywalker.cli.node import size
from skywalker.cli.token import SHORTEST
from skywalker.config import Config
from skywalker.discovery.consul import ConsulAccess, ConsulApi
from skywalker.errors import ConfigError, DiscoveryError, LocalProtocolError, RequestError, SkywalkerError
from skywalker.limits import DEFAULT_HOST
from skywalker.listeners import Listener, in_the_way
from skywalker.silk import endpoints
from skywalker.state_path import usual_state_path
from skywalker.tls.certificate import Certificate

STEERING_KERNEL: Final = (4, 6)
"""The first Linux with which a program may choose among the listeners of a TCP port."""

REQUIRED: Final = ("msgpack", "mmh3", "click")


def versions(config: Config, machine: Machine) -> Iterator[Finding]:
    """Name what is there, for whoever asks for help."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in REQUIRED)
    found = f"skywalker {skywalker.__version__}, Python {platform.python_version()}, {packages}"
    yield Finding("versions", "ok", found)


def kernel(config: Config, machine: Machine) -> Iterator[Finding]:
    """An old one cannot steer."""
    match = re.match(r"(\d+)\.(\d+)", machine.kernel)
    is_new = match is not None and (int(match[1]), int(match[2])) >= STEERING_KERNEL
    oldest = ".".join(map(str, STEERING_KERNEL))
    yield weighed("kernel", is_new, f"Linux {machine.kernel}", f"{oldest} or newer lets clients choose a worker")


def compiled(config: Config, machine: Machine) -> Iterator[Finding]:
    """A node needs its compiled core."""
    yield weighed("core", build.COMPILED, build.described(), build.HOW, "fail")


def msgpack(config: Config, machine: Machine) -> Iterator[Finding]:
    """msgpack has a slow form in Python."""
    from msgpack import Packer

    is_fast = not Packer.__module__.endswith("fallback")
    found = f"its {'extension' if is_fast else 'slow form in Python'} is used"
    yield weighed("msgpack", is_fast, found, "install a wheel of msgpack, and without MSGPACK_PUREPYTHON")


def admin(config: Config, machine: Machine) -> Iterator[Finding]:
    """The admin server needs packages of its own."""
    if config.admin:
        missing = extras.missing(extras.ADMIN)
        found = f"lacks {', '.join(missing)}" if missing else "has all packages that it needs"
        yield weighed("admin server", not missing, found, f"{extras.command_for('admin')}, or run with --no-admin")


OWN_FILES: Final = 64
"""Files that a worker has open besides its connections and its links to other workers."""

INFINITY: Final = float("inf")

MOST_OF_MEMORY: Final = 0.8
"""The part of the memory that waiting calls may fill: the rest is for the processes themselves and the system."""


def open_files(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each worker is a process with a limit of its own, and raises it to the hard one."""
    count = workers(config, machine)
    wanted = config.limits.max_connections + count + OWN_FILES
    pid = machine.node(config)
    limits = machine.limit(FILES, pid)
    if limits is None:
        yield Finding("open files", "warn", "the limit is not told", "is /proc mounted?")
        return
    soft, hard = limits
    whose = f"of the node that runs, process {pid}" if pid else "of this shell"
    yield weighed(
        "open files",
        hard >= wanted,
        f"the limit {whose} is {soft:,.0f}, can be {hard:,.0f}; a worker needs {wanted:,}",
        f"LimitNOFILE={wanted} in the unit, ulimit -Hn {wanted} in a shell, or a lower max_connections",
        "fail" if hard < wanted / 2 else "warn",
    )
    most = machine.number("sys/fs/file-max")
    if most is not None and most < wanted * count:
        found = f"the machine may have {most:,} open; {count} workers need {wanted * count:,}"
        yield Finding("files in all", "warn", found, f"sysctl -w fs.file-max={2 * wanted * count}")


def accept_queue(config: Config, machine: Machine) -> Iterator[Finding]:
    """The kernel cuts the backlog of a listener off at somaxconn."""
    yield _queue("somaxconn", "net.core.somaxconn", config, machine)


def syn_queue(config: Config, machine: Machine) -> Iterator[Finding]:
    """Connections that are being made wait in a queue before that one."""
    yield _queue("syn backlog", "net.ipv4.tcp_max_syn_backlog", config, machine)


def _queue(name: str, key: str, config: Config, machine: Machine) -> Finding:
    most = machine.number(f"sys/{key.replace('.', '/')}")
    if most is None:
        return Finding(name, "warn", f"{key} is not told", "is /proc mounted, and IPv4 there?")
    return weighed(
        name,
        most >= config.backlog,
        f"{key} is {most:,}, the backlog {config.backlog:,}",
        f"sysctl -w {key}={config.backlog}, and the same in /etc/sysctl.d to keep it",
    )


def memory(config: Config, machine: Machine) -> Iterator[Finding]:
    """What all workers may hold at once must fit."""
    count, there = workers(config, machine), machine.memory()
    if there is None:
        yield Finding("memory", "warn", "how much there is is not told", "is /proc mounted?")
        return
    group = bounds.of_group(machine.proc, machine.cgroups)
    whose = "" if group is None or group >= there else " that the control group may have"
    there = min(there, group or there)
    most = config.limits.waiting_bytes * count
    yield weighed(
        "memory",
        most <= there * MOST_OF_MEMORY,
        f"calls that wait may take {size(most)} in {count} workers, of {size(there)}{whose}",
        f"waiting_bytes of at most {size(there * MOST_OF_MEMORY / count)}, fewer workers, or more memory",
    )


def address_space(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each worker is a process with a limit of its own, and dies where that is less than what it may hold."""
    pid = machine.node(config)
    told = (machine.limit(kind, pid) for kind in (ADDRESS_SPACE, DATA))
    there = min((limit[0] for limit in told if limit is not None), default=INFINITY)
    if there == INFINITY:
        return
    count = workers(config, machine)
    needed, short = bounds.wanted(config.limits, count), bounds.shortage(config.limits, count, int(there))
    found = f"a process may have {size(there)}, and a worker may come to take {size(needed)}"
    yield weighed("address space", not short, found, short.partition(": give ")[2], "fail")


def ports(config: Config, machine: Machine) -> Iterator[Finding]:
    """Each port must be free, or this node's."""
    try:
        wanted = [each for each in doors(config) if each[2]]  # others may be any
    except LocalProtocolError as error:
        yield Finding("ports", "fail", str(error), "correct silk")
        return
    if not (machine.proc / "net" / "tcp").exists():
        yield Finding("ports", "warn", "who listens is not told", "is /proc mounted?")
        return
    taken = {(host, port): in_the_way(host, port, machine.proc) for _, host, port in wanted}
    owners = processes.holders({each.inode for found in taken.values() for each in found}, machine.proc)
    node = machine.node(config)
    for name, host, port in wanted:
        found = taken[host, port]
        at = f"{host} port {port}"
        pids = set().union(*(owners.get(each.inode, set()) for each in found))
        if found:
            level, whose = _judged(found[0], pids, node, config.port, machine)
        elif machine.is_bound(host, port):
            level, whose = "fail", "taken by a program that has bound it, and does not listen there"
        else:
            level, whose = "ok", "free"
        advice = "" if level == "ok" else f"end what has it, or choose another port for {name}"
        yield Finding(name, level, f"{at} is {whose}", advice)


def _judged(listener: Listener, pids: set[int], node: int | None, port: int, machine: Machine) -> tuple[Level, str]:
    """Return whether the node may have a port where there is a listener, which processes have, and who has it."""
    if node in pids:
        return "ok", f"this node's, which runs: process {node}"
    if not pids:
        whose = f"a process of {processes.described_user(listener.user)}, and only root can tell which"
        likely = local_nodes.likely(listener, port, machine.proc)
        if likely is not None:
            return "ok", f"taken by {whose}: it may well be this node, {processes.described(likely, machine.proc)}"
        return "fail", f"taken by {whose}"
    pid = min(pids)
    if processes.name(pid, machine.proc) == "systemd":
        return "ok", "held by systemd, as for a socket unit"
    return "fail", f"taken by {processes.described(pid, machine.proc)}"


def doors(config: Config) -> Iterator[tuple[str, str, int]]:
    """Yield setting, host and port of each address that is to be listened on.

    Raises LocalProtocolError if `silk` is none.
    """
    cluster = config.cluster
    yield "port", config.bind, config.port
    if config.pubsub:
        yield "pubsub_port", *config.pubsub_address
    if config.admin:
        yield "admin_port", config.admin_host, config.admin_port
    if cluster.health_port or cluster.register:
        yield "health_port", config.health_host, cluster.health_port
    silk = endpoints.address_of(endpoints.endpoint(cluster.silk)) if cluster.silk else None
    if silk is not None:
        yield "silk", silk.host, silk.port


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
        heir = becomes(config, {host for _, host, _ in doors(config)})
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
    writable = WRITE | ENTER
    can = first.is_dir() and may(heir, first, writable)
    if heir and not config.user and not can:
        heir, can = None, first.is_dir() and may(None, first, writable)  # so serve stays root
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


CHECKS: Final = (
    versions,
    kernel,
    compiled,
    msgpack,
    admin,
    open_files,
    accept_queue,
    syn_queue,
    memory,
    address_space,
    ports,
    steering,
    state_directory,
    certificate,
    clock,
    consul,
    secret,
    proof,
    cluster,
)
"""All of them, in the order in which they are told of."""
