"""What rings the versions in headers stand for: one file for each, which all writers of a directory share.

    VERSION.ring    the members of the cluster, in MessagePack, of whose bytes the version is made

When it was modified is when the last file of calls was begun that may need it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from skywalker.errors import JournalError
from skywalker.limits import MIB
from skywalker.ring import version_of

SUFFIX: Final = ".ring"

MAX_BYTES: Final = 4 * MIB
"""Of a file that is read; a thousand nodes have half a MiB."""

SPARE_NS: Final = 3600 * 10**9
"""How much longer a ring is kept than it may be needed: writers do not wait for each other."""

_NAME: Final = re.compile(r"[0-9a-f]{16}\.ring", re.ASCII)


def is_ring(name: str) -> bool:
    """Return whether a file is called as one with a ring is."""
    return _NAME.fullmatch(name) is not None


def files(directory: Path) -> list[Path]:
    """Return the files with rings. Raises OSError."""
    return sorted(directory / name for name in os.listdir(directory) if is_ring(name))


def keep(directory: Path, members: bytes, writer: str, needed_us: int) -> None:
    """See that a ring is there, for a file of calls that was begun at this Unix time. Raises OSError."""
    path = directory / f"{version_of(members)}{SUFFIX}"
    try:
        status = path.lstat()
        if status.st_size == len(members):
            if status.st_mtime_ns < needed_us * 1000:
                os.utime(path, ns=(needed_us * 1000, needed_us * 1000), follow_symlinks=False)
            return
    except (FileNotFoundError, PermissionError):
        pass  # there is none yet, or it is another user's: then ours takes its place, if it may
    beside = directory / f".{path.name}.{writer}"
    beside.unlink(missing_ok=True)  # of one that died; a link would be written through
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(members)
        beside.rename(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        if not (isinstance(error, PermissionError) and path.exists()):
            raise


def prune(directory: Path, oldest_us: int) -> None:
    """Delete rings that no file of calls needs which was begun at this Unix time or since. Raises OSError."""
    for path in files(directory):
        try:
            if path.lstat().st_mtime_ns + SPARE_NS < oldest_us * 1000:
                path.unlink()
        except (FileNotFoundError, PermissionError):
            pass  # another writer was faster, or its user has to


def read(path: Path) -> bytes:
    """Return the members in a file, in MessagePack. Raises JournalError, which names it, for any other, and OSError."""
    # To open a pipe would wait for who writes it.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        members = file.read(MAX_BYTES)
    if path.name != f"{version_of(members)}{SUFFIX}":
        raise JournalError(f"{path}: it does not hold the ring that its name says")
    return members
