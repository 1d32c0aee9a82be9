"""A child of the supervisor: forked to do one thing, heard over a channel, killed and reaped."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

from skywalker.processes import node_name
from workers.engine.machine import Machine
from workers.engine.signals import Signals
from workers.ipc import exits
from workers.ipc.control import Channel, Message

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15


class Child:
    """One process, from its fork until it is reaped."""

    def __init__(self, name: str, live: Callable[[Channel], int], signals: Signals, machine: Machine) -> None:
        """Fork one that ends with the status that `live` returns. Raises OSError if there is no room for it.

        `name`, of at most 15 letters, is what `ps -o comm` and `top` show. It is killed when this process dies.
        """
        assert len(name) <= 15, "the kernel would cut it"
        self.started_at = machine.monotonic()
        self.is_killed = False  # by us
        self._machine = machine
        self._selector: selectors.BaseSelector | None = None
        self.pid, self.channel = self._fork(name, live, signals)

    def _fork(self, name: str, live: Callable[[Channel], int], signals: Signals) -> tuple[int, Channel]:
        """Have it begin; return its pid, and our end of the channel to it."""
        ours, theirs = Channel.pair(self._machine)
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

    def listen(self, selector: selectors.BaseSelector, hear: Callable[[], None]) -> None:
        """Have `hear` called when it has said something, or is gone."""
        assert self._selector is None, "it is heard once"
        self._selector = selector
        selector.register(self.channel, selectors.EVENT_READ, hear)

    def _listen_no_more(self) -> None:
        if self._selector is not None:
            self._selector.unregister(self.channel)
            self._selector = None

    def hear(self) -> tuple[Message, int | None] | None:
        """Return what it says next, and the descriptor that came with it, or None if that is all for now."""
        try:
            received = self.channel.receive()
        except BlockingIOError:
            return None
        if received is None:
            self._listen_no_more()  # it is dead, or as good as: SIGCHLD says so next
        return received

    def kill(self) -> None:
        """End it at once."""
        self.is_killed = True
        os.kill(self.pid, signal.SIGKILL)

    def abort(self) -> None:
        """End it; it says on standard error where it hangs, if it can."""
        os.kill(self.pid, signal.SIGABRT)

    def is_dead(self) -> bool:
        """Whether it has ended. Its pid is not free before it is reaped."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> int:
        """Wait for its end; return its status, or the signal that ended it as a negative number."""
        status = self._wait()
        self._listen_no_more()
        self.channel.close()
        return status

    def _wait(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


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
