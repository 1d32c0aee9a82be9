"""The files for systemd: the text of each by a plan, what it is called in systemd/, and where it goes on a machine."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from skywalker.cli.systemd.plan import Plan
from skywalker.config import SETTINGS, TABLES
from skywalker.setting import Setting

CONFIG_DIRECTORY: Final = "/etc/skywalker"

_HARDENING: Final = """\
# What a node does not need is out of its reach. It forks, listens, shares memory and writes below its state directory.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateUsers=yes
PrivateDevices=yes
PrivateMounts=yes
DevicePolicy=closed
PrivateTmp=yes
ProtectSystem=strict
ProtectHome={protect_home}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
# Not ProcSubset=pid: the figures of its processes are made of /proc/stat, too.
ProtectProc=invisible
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
# ZeroMQ, for Silk, asks the kernel for the machine's addresses by AF_NETLINK, and aborts if it may not.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
# Not without @resources: a node raises its own limit of open files.
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
UMask=0027
"""


def service(plan: Plan, instance: bool = False) -> str:
    """Return the unit of a node; with `instance`, that of any of several, each with its name after the @."""
    name = "%i" if instance else "skywalker"
    directory = "skywalker-%i" if instance else "skywalker"
    kind = (
        "Type=notify-reload\n"
        if plan.notifies_reload
        else "# From systemd 253 on, Type=notify-reload does without ExecReload=.\n"
        "Type=notify\nExecReload=/bin/kill -HUP $MAINPID\n"
    )
    return f"""\
[Unit]
Description=skywalker{", node %i" if instance else ""}: programs meet on topics
Wants=network-online.target
After=network-online.target
# It is never given up: what keeps it from starting may go away, but for a wrong setting, see below.
StartLimitIntervalSec=0

[Service]
{kind}NotifyAccess=main
ExecStart={plan.executable} serve --config {CONFIG_DIRECTORY}/{name}.toml
EnvironmentFile=-{CONFIG_DIRECTORY}/{name}.env
# Its workers have their own watchdog; this is for a node that cannot see to them any more.
WatchdogSec={plan.watchdog_s}s
TimeoutStartSec=60s
# The drain timeout, and a margin. A node that is told to drain for longer asks for more.
TimeoutStopSec={plan.stop_s}s
TimeoutAbortSec=5s
# Only the supervisor is told to end: it has its workers drain.
KillMode=mixed
Restart=on-failure
RestartSec=500ms
# A wrong setting: it would be as wrong the next time.
RestartPreventExitStatus=2
# A worker that the kernel kills for its memory is replaced by the node.
OOMPolicy=continue
LimitNOFILE=524288
# Nothing is dumped, not even to a program that is told of crashes: there are keys in its memory.
LimitCORE=1

# A user that stays, not DynamicUser=: keys below {CONFIG_DIRECTORY} and journals belong to it while no node runs.
User={plan.user}
Group={plan.user}
StateDirectory={directory}
StateDirectoryMode=0750
RuntimeDirectory={directory}
RuntimeDirectoryMode=0750

{_HARDENING.format(protect_home="read-only" if plan.is_in_home else "yes")}
[Install]
WantedBy=multi-user.target
"""


def junction_socket(plan: Plan) -> str:
    """Return the unit of the listeners for MessagePack."""
    return _socket(plan, "junction", plan.junction)


def pubsub_socket(plan: Plan) -> str:
    """Return the unit of the listeners for pub/sub."""
    return _socket(plan, "pubsub", plan.pubsub)


def _socket(plan: Plan, door: str, address: str) -> str:
    listeners = f"ListenStream={address}\n" * plan.workers
    return f"""\
[Unit]
Description=skywalker, listeners for {door}

[Socket]
# One line for each worker.
{listeners}BindIPv6Only=ipv6-only
ReusePort=yes
NoDelay=yes
Backlog={plan.backlog}
FileDescriptorName={door}
Service=skywalker.service

[Install]
WantedBy=sockets.target
"""


def sysusers(plan: Plan) -> str:
    """Return the user that nodes run as."""
    return f'u {plan.user} - "skywalker nodes" /var/lib/skywalker\n'


def tmpfiles(plan: Plan) -> str:
    """Return who may read the settings: they may hold a token, or name a file beside them with one, or with keys."""
    lines = [
        f"d {CONFIG_DIRECTORY} 0750 root {plan.user}",
        *(f"z {CONFIG_DIRECTORY}/*.{kind} 0640 root {plan.user}" for kind in ("toml", "env", "keys", "key", "token")),
    ]
    return "".join(f"{line}\n" for line in lines)


def instance(plan: Plan) -> str:
    """Return the unit of any of several nodes."""
    return service(plan, instance=True)


def warnings(plan: Plan, closed: Iterable[object]) -> Iterator[str]:
    """Yield what will keep a service from starting, in words."""
    if plan.executable.startswith(("/tmp/", "/var/tmp/")):
        yield f"{plan.executable} is in a directory for temporary files, of which a service has its own"
    for directory in closed:
        yield f"{directory} lets in its owner only, and skywalker or its Python is in there: install both elsewhere"


_WIDTH: Final = 110

_ACCESS: Final = f"""
# Who may come in, and what they may do; without any such table, whoever gets to a door may do everything.
#[access.NAME]
# What shows that it is them, one is enough: what `skywalker token new` prints, names in a certificate (tls_ca), users
# of this machine (unix), networks.
#token = "sha256:{64 * "0"}"
#certificate = ["web-1"]
#user = ["www-data"]
#network = ["10.0.0.0/8"]
# Topics on which they may do it: one, or all that begin so.
#send = ["jobs", "jobs/*"]
#recv = []
#publish = []
#subscribe = ["*"]
# Whether they may see figures, and whether they are a node of the cluster, trusted with everything.
#admin = false
#node = false
# How many at each worker: calls a second, calls that wait, connections. Any number, unless it says so here.
#rate = 1000
#in_flight = 100
#connections = 10
"""


def config_file() -> str:
    """Return an example config: for each key what it is, its unit and range, and its default."""
    parts = [
        "# Settings of a skywalker node. Each is shown with its default; to change one, take away the # before it.\n"
        "# Then: skywalker check FILE, and reload or restart the node. Times and sizes are bare numbers or as here.\n"
    ]
    for table in ("", *TABLES):
        if table:
            parts.append(f"\n[{table}]\n")
        parts += [_entry(each) for each in SETTINGS if each.table == table]
    return "".join([*parts, _ACCESS])


def environment_file() -> str:
    """Return an example of an environment file: for each variable its default."""
    head = (
        "# Variables of a skywalker node; they outdo its config file, which says what each is. They are read when the\n"
        "# node starts, not when it is reloaded. To set one, take away the # before it.\n"
    )
    return head + "".join(f"#{each.variable}={each.shown(each.default)}\n" for each in SETTINGS)


def _entry(setting: Setting) -> str:
    unit = "in bytes, " if setting.metavar == "SIZE" else ""  # of times what is allowed says it
    help = setting.help[0].upper() + setting.help[1:]
    text = f"{help}. It is {unit}{setting.allowed}."
    text = textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return f"\n{text}\n#{setting.key} = {_default(setting)}\n"


def _default(setting: Setting) -> str:
    shown = setting.shown(setting.default)
    # What is shown of times and sizes is text: they have their unit.
    return shown if setting.is_switch or setting.metavar == "N" else json.dumps(shown, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class File:
    """One of them."""

    name: str
    path: str  # where it is installed
    text: Callable[[Plan], str]
    is_yours: bool = False  # it is there to be edited: once there, it is left as it is


FILES: Final = (
    File("skywalker.service", "/etc/systemd/system/skywalker.service", service),
    File("skywalker@.service", "/etc/systemd/system/skywalker@.service", instance),
    File("skywalker.socket", "/etc/systemd/system/skywalker.socket", junction_socket),
    File("skywalker-pubsub.socket", "/etc/systemd/system/skywalker-pubsub.socket", pubsub_socket),
    File("skywalker.sysusers", "/etc/sysusers.d/skywalker.conf", sysusers),
    File("skywalker.tmpfiles", "/etc/tmpfiles.d/skywalker.conf", tmpfiles),
    File("skywalker.toml", "/etc/skywalker/skywalker.toml", lambda _: config_file(), is_yours=True),
    File("skywalker.env", "/etc/skywalker/skywalker.env", lambda _: environment_file(), is_yours=True),
)

CONFIG: Final = "/etc/skywalker/skywalker.toml"
