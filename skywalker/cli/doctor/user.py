"""Whom a node becomes: what it needs is to be checked for that user, also by root who is about to start it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Final

from skywalker.config import Config, is_loopback
from skywalker.errors import ConfigError

READ: Final = 4
WRITE: Final = 2
ENTER: Final = 1

NOBODY: Final = "nobody"


def becomes(config: Config, hosts: set[str]) -> pwd.struct_passwd | None:
    """Return whom `serve` would become if this user ran it; None if it would stay who it is.

    The `hosts` are where it listens. Raises ConfigError if it could not start as that user.
    """
    if os.geteuid() or config.user == "root":
        return None
    if config.user:
        return _named(config.user)
    if not all(map(is_loopback, hosts)):
        raise ConfigError("root must say by user whom serve is to become")
    try:
        nobody = _named(NOBODY)
    except ConfigError:
        return None
    # It stays root where nobody could not run it.
    needed = (Path(__file__), Path(os.__file__))
    return nobody if all(may(nobody, each, READ) for each in needed) else None


def may(user: pwd.struct_passwd | None, path: Path, mode: int) -> bool:
    """Whether a user, or this one, may READ, WRITE or ENTER what is at a path, as far as its mode bits say."""
    if user is None:
        return os.access(path, mode, effective_ids=True)
    path = path.resolve()
    return _has(user, path, mode) and all(_has(user, each, ENTER) for each in path.parents)


def _has(user: pwd.struct_passwd, path: Path, mode: int) -> bool:
    found = path.stat()
    if found.st_uid == user.pw_uid:
        return found.st_mode >> 6 & mode == mode
    if found.st_gid in os.getgrouplist(user.pw_name, user.pw_gid):
        return found.st_mode >> 3 & mode == mode
    return found.st_mode & mode == mode


def _named(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"there is no user {name!r} on this machine") from None
