"""How the supervisor makes a process of its node: a fork that runs one thing, over a channel, and ends with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

from skywalker.processes import node_name
from workers.engine.signals import Signals
from workers.ipc import exits
from workers.ipc.control import Channel

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15


def fork(signals: Signals, name: str, live: Callable[[Channel], int]) -> tuple[int, Channel]:
    """Fork a process that ends with the status that `live` returns; return its pid, and our end of the channel to it.

    `name`, of at most 15 letters, is what `ps -o comm` and `top` show. The process is killed when this one dies.
    Raises OSError if there is no room for it.
    """
    ours, theirs = Channel.pair()
    parent = os.getpid()
    sys.stderr.flush()
    # A signal to the child would be queued as ours, until it has opened its own queue.
    signals.hold()
    try:
        pid = os.fork()
        if not pid:
            ours.close()
            _live(name, live, theirs, parent)
    except OSError:
        ours.close()
        raise
    finally:
        signals.release()
        theirs.close()
    return pid, ours


def be_node(port: int) -> None:
    """Have this process be seen as the first one of the node with that port: by `ps -o comm`, and `skywalker drain`."""
    _rename(node_name(port))


def _rename(name: str) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())


def _live(name: str, live: Callable[[Channel], int], channel: Channel, parent: int) -> NoReturn:
    status = exits.BUG
    try:
        _rename(name)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(exits.OK)  # it died before the kernel was told
        status = live(channel)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
