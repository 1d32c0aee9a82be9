"""What the supervisor does for the agent: starts it anew when it dies, and brings it and the workers together."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from typing import BinaryIO

from workers.engine import sockets
from workers.engine.machine import Machine
from workers.ipc import control, exits
from workers.process.child import Child
from workers.process.crew import Crew
from workers.process.slot import State
from workers.stats.log import Log


class AgentKeeper:
    """The agent's place in its node. The crew is handed on each file that holds a snapshot."""

    def __init__(
        self,
        fork: Callable[[], Child],
        selector: selectors.BaseSelector,
        crew: Crew,
        log: Log,
        machine: Machine,
    ) -> None:
        """`fork` makes an agent, or raises OSError as Child does."""
        self._fork = fork
        self._selector = selector
        self._crew = crew
        self._log = log
        self._machine = machine
        self.agent: Child | None = None
        self._deaths = 0  # in a row
        self._draining = False
        self._wanted = True
        self._renewed: Child | None = None  # the last agent that was ended for another
        self._lossy: Child | None = None  # the last agent that had no room for a hint
        self.snapshot: BinaryIO | None = None  # the latest
        self.restart_at: float | None = None
        self.lost = 0  # agents that ended by themselves
        self.left = False  # the node is announced nowhere any more

    def start(self) -> None:
        """Fork the agent; later, if there is no room for it now."""
        assert self.agent is None, "there is one at a time"
        self.restart_at = None
        try:
            self.agent = agent = self._fork()
        except OSError as error:
            self._log.error("cannot-fork", process="agent", reason=error.strerror)
            self._put_off(0.0)
            return
        agent.listen(self._selector, lambda: self._hear(agent))

    def introduce(self) -> None:
        """Have it ask all workers what they hold. Call again later: there may be no room for that now."""
        for process in self._crew.processes():
            if self.agent is None or process.agent is self.agent or process.state is State.STARTING:
                continue
            try:
                ours, theirs = sockets.link(self._machine)
            except OSError as error:
                self._log.error("cannot-link", process="agent", worker=process.slot.number, reason=error.strerror)
                return
            process.agent = self.agent
            message = control.Inspect(process.slot.number, process.pid)
            with ours, theirs:
                self.tell(message, ours)
                self._crew.tell(process, message, passed=theirs)

    def tell(self, message: control.Message, passed: control.HasFileno | None = None) -> None:
        """Say something to the agent, if there is one. It may be slow: only hints are lost by that, or it is killed."""
        agent = self.agent
        if agent is None or agent.channel.send(message, passed):
            return
        if not isinstance(message, control.Heard):
            self._log.error("agent-deaf", pid=agent.pid)
            agent.kill()
        elif self._lossy is not agent:
            # Anybody can say much; and a node that joins says so to each that it meets.
            self._lossy = agent
            self._log.warning("hints-lost", pid=agent.pid)

    def drain(self) -> None:
        """Have the node announced nowhere any more."""
        assert not self._draining, "a node drains once"
        self._draining = True
        self.restart_at = None
        self.left = self.agent is None
        self.tell(control.Drain())

    def renew(self, *, wanted: bool, forgets: bool) -> None:
        """Have another agent, with the settings as they are now, in place of this one; none if none is wanted.

        This one first has its registration forgotten if it `forgets`.
        """
        assert not self._draining, "a node that ends has no other"
        self._wanted = wanted
        if self.agent is None:
            self.restart_at = self._machine.monotonic() if wanted else None
        elif self.agent is not self._renewed:  # else it ends already
            self._renewed = self.agent
            if forgets:
                self.tell(control.Forget())
            else:
                self.agent.kill()

    def hangs(self) -> None:
        """Have another for one whose loop does not turn."""
        assert self.agent is not None, "it was watched"
        self._log.error("agent-hung", pid=self.agent.pid)
        self.agent.kill()

    def _hear(self, agent: Child) -> None:
        if agent is not self.agent:
            return  # it was reaped in this same turn
        match agent.hear():
            case control.Ring(), int(fd):
                if self.snapshot is not None:
                    self.snapshot.close()
                self.snapshot = open(fd, "rb", buffering=0)  # noqa: SIM115  # kept for workers yet to come
                self._crew.follow(self.snapshot)
            case control.Ring(), None:
                # No descriptor was left for the file, and it comes once: the next agent tells it anew.
                self._log.error("no-descriptor", message="Ring")
                agent.kill()
            case control.Left(), _:
                self.left = True

    def reap(self) -> None:
        """Have a successor for an agent that is dead, unless the node ends."""
        agent = self.agent
        if agent is None or not agent.is_dead():
            return
        self._hear(agent)
        status = agent.reap()
        self.agent = None
        if self._draining:
            self.left = True
        elif agent is self._renewed:
            self.restart_at = self._machine.monotonic() if self._wanted else None
        else:
            self.lost += 1
            self._put_off(self._machine.monotonic() - agent.started_at)
            self._log.error("agent-ended", pid=agent.pid, how=exits.how(status))

    def _put_off(self, lived_s: float) -> None:
        self._deaths = 1 if lived_s >= exits.LONG_LIFE_S else self._deaths + 1
        self.restart_at = self._machine.monotonic() + max(exits.restart_delay(self._deaths), 0.1)

    def end(self) -> None:
        """Kill the agent, if it is still there, and forget it."""
        if self.agent is not None:
            self.agent.kill()
            self.agent.reap()
            self.agent = None

    def close(self) -> None:
        """Give up this process's copies of what is the agent's."""
        if self.agent is not None:
            self.agent.channel.close()
        if self.snapshot is not None:
            self.snapshot.close()
