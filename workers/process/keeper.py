"""What the supervisor does for the agent: starts it anew when it dies, and brings it and the workers together."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import BinaryIO

from skywalker.embedding import AGENT
from workers.engine import sockets
from workers.engine.signals import Signals
from workers.ipc import control, exits
from workers.process import birth
from workers.process.crew import Crew
from workers.process.lifecycle import State
from workers.stats.log import Log


class Keeper:
    """The agent's place in its node. The crew is handed on each file that holds a snapshot."""

    def __init__(
        self,
        live: Callable[[control.Channel], int],
        signals: Signals,
        selector: selectors.BaseSelector,
        crew: Crew,
        log: Log,
    ) -> None:
        self._live = live
        self._signals = signals
        self._selector = selector
        self._crew = crew
        self._log = log
        self._channel: control.Channel | None = None
        self.started_at = 0.0
        self._deaths = 0  # in a row
        self._draining = False
        self._wanted = True
        self._renewed_pid = 0  # the last agent that was ended for another
        self._lossy_pid = 0  # the last agent that had no room for a hint
        self.snapshot: BinaryIO | None = None  # the latest
        self.pid = 0
        self.restart_at: float | None = None
        self.lost = 0  # agents that ended by themselves
        self.left = False  # the node is announced nowhere any more

    def start(self) -> None:
        """Fork the agent; later, if there is no room for it now."""
        self.restart_at = None
        self.started_at = time.monotonic()
        try:
            self.pid, self._channel = birth.fork(self._signals, AGENT, self._live)
        except OSError as error:
            self._log.error("cannot-fork", process="agent", reason=error.strerror)
            self._put_off()
            return
        self._selector.register(self._channel, selectors.EVENT_READ, self._hear)

    def introduce(self) -> None:
        """Have it ask all workers what they hold. Call again later: there may be no room for that now."""
        for process in self._crew.processes():
            if not self.pid or process.agent is self._channel or process.state is State.STARTING:
                continue
            try:
                ours, theirs = sockets.link()
            except OSError as error:
                self._log.error("cannot-link", process="agent", worker=process.slot.number, reason=error.strerror)
                return
            process.agent = self._channel
            message = control.Inspect(process.slot.number, process.pid)
            with ours, theirs:
                self.tell(message, ours)
                self._crew.tell(process, message, passed=theirs)

    def tell(self, message: control.Message, passed: control.HasFileno | None = None) -> None:
        """Say something to the agent, if there is one. It may be slow: only hints are lost by that, or it is killed."""
        if self._channel is None or self._channel.send(message, passed):
            return
        if not isinstance(message, control.Heard):
            self._log.error("agent-deaf", pid=self.pid)
            self.kill()
        elif self._lossy_pid != self.pid:
            # Anybody can say much; and a node that joins says so to each that it meets.
            self._lossy_pid = self.pid
            self._log.warning("hints-lost", pid=self.pid)

    def drain(self) -> None:
        """Have the node announced nowhere any more."""
        self._draining = True
        self.restart_at = None
        self.left = not self.pid
        self.tell(control.Drain())

    def renew(self, *, wanted: bool) -> None:
        """Have another agent, with the settings as they are now, in place of this one; none if none is wanted."""
        self._renewed_pid = self.pid
        self._wanted = wanted
        self.restart_at = time.monotonic() if wanted and not self.pid else None
        self.kill()

    def hangs(self) -> None:
        """Have another for one whose loop does not turn."""
        self._log.error("agent-hung", pid=self.pid)
        self.kill()

    def kill(self) -> None:
        """End the agent at once."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    def _hear(self) -> None:
        if self._channel is None:
            return  # it was reaped in this same turn
        try:
            received = self._channel.receive()
        except BlockingIOError:
            return
        match received:
            case None:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(self._channel)
            case control.Ring(), int(fd):
                if self.snapshot is not None:
                    self.snapshot.close()
                self.snapshot = open(fd, "rb", buffering=0)  # noqa: SIM115  # kept for workers yet to come
                self._crew.follow(self.snapshot)
            case control.Ring(), None:
                # No descriptor was left for the file, and it comes once: the next agent tells it anew.
                self._log.error("no-descriptor", message="Ring")
                self.kill()
            case control.Left(), _:
                self.left = True

    def reap(self) -> None:
        """Have a successor for an agent that is dead, unless the node ends."""
        if not self.pid or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        self._hear()
        _, status = os.waitpid(self.pid, 0)
        pid, self.pid = self.pid, 0
        if self._channel is not None:
            with contextlib.suppress(KeyError):  # its end may have been read already
                self._selector.unregister(self._channel)
            self._channel.close()
            self._channel = None
        if self._draining:
            self.left = True
            return
        if pid == self._renewed_pid:
            self.restart_at = time.monotonic() if self._wanted else None
            return
        self.lost += 1
        self._put_off()
        self._log.error("agent-ended", pid=pid, how=exits.how(os.waitstatus_to_exitcode(status)))

    def _put_off(self) -> None:
        now = time.monotonic()
        self._deaths = 1 if now - self.started_at >= exits.LONG_LIFE_S else self._deaths + 1
        self.restart_at = now + max(exits.restart_delay(self._deaths), 0.1)

    def end(self) -> None:
        """Kill the agent, if it is still there, and forget it."""
        if self.pid:
            self.kill()
            os.waitpid(self.pid, 0)
            self.pid = 0

    def close(self) -> None:
        """Give up this process's copies of what is the agent's."""
        if self._channel is not None:
            self._channel.close()
        if self.snapshot is not None:
            self.snapshot.close()
