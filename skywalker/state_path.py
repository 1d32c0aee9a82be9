"""Where a node keeps what outlives it, unless told otherwise."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

from skywalker.limits import DEFAULT_HOST


def usual_state_path(host: str, port: int) -> Path | None:
    """Return the state directory of a node that was given none; None for a port chosen by the kernel, kept nowhere.

    Nodes that share a port, each at a loopback address of its own, have one each.
    """
    if not port:
        return None
    given = os.environ.get("STATE_DIRECTORY")  # by systemd, already ours alone
    if given:
        return Path(given.split(":")[0])  # systemd lists all that it made
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "skywalker" / (f"{host}:{port}" if _is_further_loopback(host) else str(port))


def _is_further_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback and host != DEFAULT_HOST
    except ValueError:
        return False
