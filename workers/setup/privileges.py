"""What a node may do to its machine: little. One that was started as root becomes somebody else, and stays that.

Root is needed to listen at ports below 1024, and for nothing else. So it listens first, then changes its user, and all
that comes after that, its state, its journal, its workers and each reload, is that user's.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import pwd
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError

ROOT: Final = "root"

NOBODY: Final = "nobody"
"""Whom a node becomes that root has started on loopback only, and not told whom to become."""

MAX_REASON: Final = 2048
"""Bytes of why something cannot be done: less than a pipe takes at once."""

PR_SET_NO_NEW_PRIVS: Final = 38

_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24

_CAPABILITIES: Final = re.compile(r"^Cap(?:Prm|Eff|Bnd):\s*(\w+)$", re.MULTILINE)
"""Those that a process has, those that it could use again, and those that it could ever get, in /proc/PID/status."""


def is_undecided(user: str) -> bool:
    """Whether this is root, and nobody has said, by the setting `user`, whom to become."""
    return not user and os.geteuid() == 0


def heir(user: str) -> pwd.struct_passwd | None:
    """Return whom this process has to become, given the setting `user`; None if it stays who it is.

    Raises ConfigError if it must not stay root, or cannot become that user.
    """
    uid = os.geteuid()
    if not user:
        if uid == 0:
            raise ConfigError(
                "user: this is root, which a node does not stay at an address that others reach, unless told to: give "
                "--user NAME, whom it becomes once it listens, or --user root"
            )
        return None
    if user == ROOT and uid == 0:
        return None  # also where nobody has a name
    found = account(user)
    if found.pw_uid == uid:
        return None
    if uid != 0:
        raise ConfigError(f"user: only root can become {user}, and this is user {uid}: leave it out, or start as root")
    return found


def account(user: str) -> pwd.struct_passwd:
    """Return who that is on this machine. Raises ConfigError if nobody is."""
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise ConfigError(f"user: there is no user {user!r} on this machine") from None


def trial(user: pwd.struct_passwd, deed: Callable[[], object]) -> None:
    """Find out in a child whether root, once it has become that user, could do something. Raises ConfigError if not."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            become(user)
            deed()
        except BaseException as error:  # of whatever kind: it could not
            os.write(writing, (str(error) or type(error).__name__).encode(errors="replace")[:MAX_REASON])
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as told:
        why = told.read()
    _, status = os.waitpid(pid, 0)
    if why or status:
        raise ConfigError(why.decode(errors="replace") or "it was killed when it tried")


def become(user: pwd.struct_passwd) -> None:
    """Turn this process, which is root's, into one of that user's for good, with no capability left.

    Raises ConfigError if that cannot be, or if that user may not read what a node is made of.
    """
    uid, gid = user.pw_uid, user.pw_gid
    _empty_bounding_set()
    try:
        os.initgroups(user.pw_name, gid)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise ConfigError(
            f"user: root may not become {user.pw_name} here: {error.strerror}: start the node as {user.pw_name}"
        ) from error
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # or a program that is set-uid could be of help
    if not _is_for_good(uid, gid):
        raise ConfigError(f"user: as {user.pw_name} this keeps some of what root may do: start the node as that user")
    # Its state is kept below its home, and not below root's.
    os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    os.environ.pop("XDG_STATE_HOME", None)
    for file in (__file__, os.__file__):
        if not os.access(file, os.R_OK):
            raise ConfigError(
                f"user: {user.pw_name} may not read {file}, which the node is made of: install skywalker and its "
                "Python where every user may read them"
            )


def _empty_bounding_set() -> None:
    """Have no program that comes of this process ever get a capability, be it set-uid. Raises ConfigError."""
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    # The first number that stands for none is refused, too, and as wrong.
    if ctypes.get_errno() != errno.EINVAL:
        raise ConfigError(
            "user: root may not give up capabilities for good here, which takes CAP_SETPCAP: add that, or start the "
            "node as the user"
        )


def _is_for_good(uid: int, gid: int) -> bool:
    with contextlib.suppress(PermissionError):
        os.setuid(0)
    kept = any(int(mask, 16) for mask in _CAPABILITIES.findall(Path("/proc/self/status").read_text()))
    return not kept and os.getresuid() == (uid, uid, uid) and os.getresgid() == (gid, gid, gid)


def forbid_core_dumps() -> None:
    """Have the kernel dump neither this process nor its children: their memory holds keys, and what others send."""
    # With a limit of 0 a program that is told of crashes would still get the dump.
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    except ValueError:
        # Not for choice: nobody but root could look at the open files of such a process, for the metrics.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)


def told(user: pwd.struct_passwd) -> str:
    """Return the words that explain to root why something cannot be had, all of a sudden."""
    return (
        f"as user {user.pw_name}, who has taken over and who reads all files at a reload, too: have that user or its "
        "group read them"
    )
