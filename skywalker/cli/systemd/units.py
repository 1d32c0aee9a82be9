"""The text of each file for systemd, by a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from skywalker.cli.systemd.plan import Plan

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
