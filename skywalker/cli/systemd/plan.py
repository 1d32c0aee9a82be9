"""What the files for systemd depend on: where skywalker is installed, what the manager knows, and a node's settings."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skywalker.address import Address
from skywalker.config import Config
from skywalker.errors import ConfigError

NOTIFY_RELOAD: Final = 253
"""The first version of systemd that has Type=notify-reload."""

WATCHDOG_S: Final = 30.0
"""Long enough for a node to replace a worker that hangs, which it does by itself, before the manager ends it."""

STOP_MARGIN_S: Final = 10.0
"""Seconds beyond the drain timeout until a node that still has not ended is killed."""

DEFAULT_USER: Final = "skywalker"

_DEFAULTS: Final = Config()
_HOMES: Final = ("/home/", "/root/", "/run/user/")
"""What ProtectHome=yes hides."""
_PLAIN_PATH: Final = re.compile(r"/[\w./+@:~-]+", re.ASCII)
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Made without arguments, it is that of the files in systemd/, which fit any machine."""

    executable: str = "/opt/skywalker/bin/skywalker"
    user: str = DEFAULT_USER
    notifies_reload: bool = False  # whether the manager knows Type=notify-reload
    is_in_home: bool = False  # whether skywalker or its Python is where ProtectHome=yes would hide it
    junction: str = f"{_DEFAULTS.bind}:{_DEFAULTS.port}"
    pubsub: str = f"{_DEFAULTS.bind}:{_DEFAULTS.pubsub_port}"
    workers: int = 1  # listeners of each door
    backlog: int = _DEFAULTS.backlog
    stop_s: int = math.ceil(_DEFAULTS.drain_timeout_s + STOP_MARGIN_S)
    watchdog_s: int = math.ceil(WATCHDOG_S)

    @staticmethod
    def here(config: Config, user: str) -> Plan:
        """Return the plan for a node of these settings on this machine. Raises ConfigError if there can be none."""
        if not _USER.fullmatch(user):
            raise ConfigError(f"--user: {user!r} cannot name a system user: use a-z, 0-9, - and _, at most 31")
        version = manager_version()
        return Plan(
            executable=_executable(),
            user=user,
            notifies_reload=version is not None and version >= NOTIFY_RELOAD,
            is_in_home=any(f"{path}/".startswith(_HOMES) for path in needed()),
            junction=_listened("port", config.bind, config.port),
            pubsub=_listened("pubsub_port", *config.pubsub_address),
            workers=config.workers or os.cpu_count() or 1,
            backlog=config.backlog,
            stop_s=math.ceil(config.drain_timeout_s + STOP_MARGIN_S),
            watchdog_s=math.ceil(max(WATCHDOG_S, 3 * config.watchdog_s)),
        )


def manager_version() -> int | None:
    """Return the version of this machine's systemd, None if there is none."""
    import subprocess  # only now: `skywalker --help` reads this file too

    try:
        told = subprocess.run(
            ["systemctl", "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"systemd (\d+)", told)
    return int(found[1]) if found else None


def needed() -> list[Path]:
    """Return what a service must be able to read: the command, its environment, its Python and this package."""
    # Of a link, where it leads as well: that of a virtual environment is its Python.
    python = Path(sys.executable)
    found = [Path(_executable()), python, python.resolve(), Path(sys.prefix), Path(sys.base_prefix), Path(__file__)]
    return list(dict.fromkeys(found))


def closed_directories() -> Iterator[Path]:
    """Yield the directories on the way to those that only their owners may enter."""
    seen = {parent for path in needed() for parent in path.parents}
    yield from (path for path in sorted(seen) if not path.stat().st_mode & stat.S_IXOTH)


def _executable() -> str:
    beside = Path(sys.executable).with_name("skywalker")
    found = str(beside) if beside.is_file() else shutil.which("skywalker")
    if found is None:
        raise ConfigError(f"there is no command skywalker beside {sys.executable}: install the package there")
    path = os.path.abspath(found)
    if not _PLAIN_PATH.fullmatch(path):
        raise ConfigError(f"{path}: a unit cannot name this path: install where it is of letters and digits")
    return path


def _listened(key: str, host: str, port: int) -> str:
    """Return an address as a socket unit has it, in numbers."""
    if not port:
        raise ConfigError(f"{key}: a service needs a port that is known, not 0")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(f"{host} is not an address of this machine: {error.strerror}") from error
    return str(Address(str(found[0][4][0]), port))
