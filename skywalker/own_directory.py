"""Directories that programs write to at places that others can foresee, such as one below /tmp.

Whoever may put files into such a directory, or something else in its place, could have a program write through links
of theirs, or read what they have made up. So it has to be this user's or root's, and so has what leads to it where
everybody may put things.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o700
"""For this user alone."""

PUBLIC: Final = 0o755
"""Others may read what is in it."""

SHARED: Final = 0o775
"""Its group may add to it, and everybody if it is sticky. Who writes there must take no name that is taken."""


def make(path: Path, mode: int = PRIVATE) -> None:
    """Make a directory, with those above it, or take the one that is there if it passes check(). Raises OSError."""
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    check(path, mode)


@contextlib.contextmanager
def removed_on_error(path: Path) -> Iterator[None]:
    """If the block raises, remove what it has made of a directory and those above it, unless something is in there."""
    new = [each for each in (path.absolute(), *path.absolute().parents) if not os.path.lexists(each)]
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for each in new:
                each.rmdir()
        raise


def check(path: Path, mode: int = PRIVATE) -> None:
    """Raise OSError if somebody may change what is in a directory who may not by its `mode`, or put another there.

    Of what leads to it only directories are looked at in which everybody may put things: whom the others belong to is
    trusted. It is a PermissionError whose `strerror` says what is wrong, and what to do.
    """
    path = path.absolute()
    for each in (path, *path.parents):
        name, above = "it" if each == path else each, each.parent
        everybodys = above.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX)
        if each == path or everybodys & stat.S_IWOTH:
            _check_owner(name, each.lstat())
        if everybodys == stat.S_IWOTH:  # where it is sticky, each may only rename what is theirs
            raise PermissionError(errno.EPERM, f"everybody may put another in its place: chmod +t {above}")
    found = path.stat()  # where a link leads to
    _check_owner("it", found)
    is_open = found.st_mode & ~mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_open and not (mode == SHARED and found.st_mode & stat.S_ISVTX):
        raise PermissionError(errno.EPERM, f"others may write to it: chmod go-w {path}")


def _check_owner(name: Path | str, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise PermissionError(errno.EPERM, f"{name} belongs to user {found.st_uid}: name a directory of your own")
