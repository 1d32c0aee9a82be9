"""Where a node keeps what outlives it, unless told otherwise."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Final

from skywalker.limits import DEFAULT_HOST

NO_HOMES: Final = (Path("/nonexistent"), Path("/"))
"""The homes of users who have none, such as nobody: of Debian's, and of others'."""


def usual_state_path(host: str, port: int, home: Path | None = None) -> Path | None:
    """Return the state directory of a node that was given none; None if its state is kept nowhere.

    None is for a port chosen by the kernel, and for a user who has no home. Nodes that share a port, each at a loopback
    address of its own, have a directory each. `home` is that of a user whom the node is yet to become.
    """
    if not port:
        return None
    given = os.environ.get("STATE_DIRECTORY")  # by systemd, already ours alone
    if given:
        return Path(given.split(":")[0])  # systemd lists all that it made
    if home is not None or not (base := os.environ.get("XDG_STATE_HOME")):
        try:
            owners = home or Path.home()
        except RuntimeError:  # of a number that is no user's, with no HOME, as in containers
            return None
        if owners in NO_HOMES:
            return None
        base = str(owners / ".local" / "state")
    return Path(base) / "skywalker" / (f"{host}:{port}" if _is_further_loopback(host) else str(port))


def _is_further_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback and host != DEFAULT_HOST
    except ValueError:
        return False
