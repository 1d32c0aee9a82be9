"""Where a node keeps what outlives it, unless told otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def usual_state_path(port: int) -> Path | None:
    """Return the state directory of a node that was given none; None for a port chosen by the kernel, kept nowhere."""
    if not port:
        return None
    given = os.environ.get("STATE_DIRECTORY")  # by systemd, already ours alone
    if given:
        return Path(given.split(":")[0])  # systemd lists all that it made
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "skywalker" / str(port)
