"""The first process of a node: has its workers and its agent live, and its signals and its manager heard.

It carries no traffic and does nothing that can block. start.py makes it once it has all that it needs. Sockets that
processes share are described in engine/sockets.py, what is said over the channels in ipc/control.py, what may happen to
a worker in slot.py, what is done then in crew.py.
"""

from __future__ import annotations

import contextlib
import enum
import json
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import skywalker
from skywalker.address import Address
from skywalker.config import Config
from skywalker.embedding import AGENT
from skywalker.errors import SkywalkerError
from skywalker.members import Member
from workers.calls.own_node import OwnNode
from workers.engine.credentials import Credentials
from workers.engine.life import Life
from workers.engine.machine import Machine, Program
from workers.ipc import control, exits, snapshots
from workers.process import reload
from workers.process.agent_keeper import AgentKeeper
from workers.process.child import Child
from workers.process.crew import BootError, Crew
from workers.process.liveness import Liveness
from workers.process.notify import Notifier
from workers.process.reload import Rollout
from workers.process.slot import Process, Slot
from workers.setup import cluster, exposure
from workers.setup.ground import JUNCTION, Ground
from workers.stats import metrics
from workers.stats.log import Log
from workers.stats.shared import SharedCounters
from workers.worker.worker import Worker

LEAVE_S: Final = 2.0
"""Seconds for the agent of a node that drains to have it found no more, before its doors are closed all the same."""

MARGIN_S: Final = 7.0
"""Seconds that it may take to end a worker, besides those that its clients get."""


State = enum.IntEnum("State", "STARTING SERVING RELOADING HIDING DRAINING STOPPING", start=0)
"""Where a node is in its life."""

Event = enum.IntEnum("Event", "ANNOUNCED RELOADED RENEWED DRAINED HIDDEN STOPPED", start=0)
"""What happens to a node."""

LIFE: Final = Life(
    "node",
    states=[
        ("starting", "Not every worker has been ready yet."),
        ("serving", "It lets clients in, and is found."),
        ("reloading", "It serves, and its workers are replaced one by one."),
        ("hiding", "It serves, and its agent has it found no more."),
        ("draining", "Its doors are closed, and calls that wait have their time."),
        ("stopping", "Its processes are to end, and it ends with the last."),
    ],
    events=[
        ("announced", "Every worker has been ready once."),
        ("reloaded", "New settings are taken over."),
        ("renewed", "All its workers go by them; or one cannot, and those to come go by the settings from before."),
        ("drained", "It is told to end, or the program that started it is gone."),
        ("hidden", "Nobody finds it any more, or those who do have had their time."),
        ("stopped", "No call waits any more, its time is over, or it is told to end once more."),
    ],
    ways={
        State.STARTING: {Event.ANNOUNCED: State.SERVING, Event.DRAINED: State.HIDING},
        State.SERVING: {Event.RELOADED: State.RELOADING, Event.DRAINED: State.HIDING},
        State.RELOADING: {Event.RENEWED: State.SERVING, Event.DRAINED: State.HIDING},
        State.HIDING: {Event.HIDDEN: State.DRAINING, Event.STOPPED: State.STOPPING},
        State.DRAINING: {Event.STOPPED: State.STOPPING},
    },
)


Assemble = Callable[
    [Config, Ground, Credentials | None, Iterable[Member], control.Channel, Log, SharedCounters, Machine], Program
]
"""Makes the agent of a node, as assemble() of assembly.py does."""


class Supervisor:
    """A node, from the birth of its first process to the end of its last."""

    def __init__(
        self,
        config: Config,
        ground: Ground,
        credentials: Credentials | None,
        assemble: Assemble,
        log: Log,
        machine: Machine,
        *,
        notifier: Notifier,
        parent: socket.socket | None = None,
        read_again: Callable[[], Config] | None = None,
    ) -> None:
        """The socket `parent`, if any, is told the address once every worker serves; its end ends the node.

        At SIGHUP the settings that `read_again` returns are taken over; it raises a SkywalkerError if they are wrong.
        """
        self._config = config
        self._ground = ground
        self._credentials = credentials  # if it speaks TLS
        self._assemble = assemble
        self._log = log
        self._machine = machine
        self._notifier = notifier
        self._parent = parent  # the program that started this node, if it wants to know of it
        self._read_again = read_again
        self._signals = machine.signals(
            [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD], ignored=[signal.SIGPIPE]
        )
        self._shared = SharedCounters(len(ground.listeners))
        self._before = config, credentials  # gone back to if a reload fails
        self.state = State.STARTING
        """Where it is in its life."""
        self._rollout: Rollout | None = None  # while it reloads
        self._reload_again = False  # once it serves
        self._doors_close_at: float | None = None  # while it leaves
        self._stop_at: float | None = None  # while it leaves or drains

    def run(self) -> int:
        """Serve until told to end; return the exit status, of which exits.py has a list."""
        try:
            self.begin()
            while self.turn():
                pass
        except BootError as error:
            print(f"skywalker: {error}", file=sys.stderr)
            return exits.BOOT
        finally:
            self.end()
        self._log.info("ended")
        return exits.OK

    def begin(self) -> None:
        """Have the first workers forked. Raises BootError."""
        self._shared.node[metrics.STARTED.at] = int(self._machine.unix() * 1e6)
        self._signals.open()
        self._selector = self._machine.selector()
        self._selector.register(self._signals, selectors.EVENT_READ, self._on_signals)
        if self._parent is not None:
            self._selector.register(self._parent, selectors.EVENT_READ, self._on_parent)
        self._crew = Crew(
            self._ground.listeners,
            self._shared,
            self._fork_worker,
            self._heard,
            self._selector,
            self._log,
            self._machine,
        )
        self._agent = AgentKeeper(self._fork_agent, self._selector, self._crew, self._log, self._machine)
        for slot in self._crew.slots:
            self._crew.start(slot)
        self._watch(self._config.watchdog_s)

    def end(self) -> None:
        """End, at once, what still lives."""
        self._crew.kill_all()
        self._agent.end()

    def _watch(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._liveness = Liveness(
            self._crew, self._agent, self._shared, self._notifier, patience_s, self._machine.monotonic()
        )

    def _happened(self, event: Event) -> None:
        self.state = State(LIFE.after(self.state, event))

    # A turn.

    def turn(self) -> bool:
        """Wait for what is next, and do it; return whether there is more to come."""
        assert (self._rollout is not None) == (self.state is State.RELOADING)
        assert (self._doors_close_at is not None) == (self.state is State.HIDING)
        assert (self._stop_at is not None) == (self.state in (State.HIDING, State.DRAINING))
        for key, _ in self._selector.select(self.wait()):
            key.data()
        now = self._machine.monotonic()
        if self._doors_close_at is not None and (self._doors_close_at <= now or self._agent.left):
            self._close_doors()
        if self._stop_at is not None and (self._stop_at <= now or self._is_idle):
            self._stop()
        self._crew.turn(now)
        if self._rollout is not None and not self._rollout.go_on():
            self._reloaded(self._rollout)
        if self._agent.restart_at is not None and self._agent.restart_at <= now:
            self._start_agent()
        if self._liveness.next_at <= now:
            self._liveness.look(now, self._doing)
            if self._credentials is not None:
                self._credentials.renew()  # for children still to come
            self._introduce()  # those, too, for whom there was no room before
        return not self._crew.is_over

    def wait(self) -> float:
        """Return the seconds until there is something to do, whatever comes."""
        times = [self._doors_close_at, self._stop_at]
        times += [self._crew.next_at(), self._liveness.next_at, self._agent.restart_at]
        return max(0.0, min(at for at in times if at is not None) - self._machine.monotonic())

    @property
    def _doing(self) -> str:
        if self.state >= State.HIDING:
            return "draining"
        return "reloading" if self.state is State.RELOADING else "serving"

    def _on_signals(self) -> None:
        for number in self._signals.read():
            if number == signal.SIGCHLD:
                self._agent.reap()
                self._shared.node[metrics.AGENT_RESTARTED.at] = self._agent.lost
                self._crew.reap()
            elif number == signal.SIGHUP:
                self._reload()
            elif self.state >= State.HIDING:
                self._stop()
            else:
                self._drain(signal.Signals(number).name)

    def _on_parent(self) -> None:
        # The other end never writes: this is its end, with the program that we are part of.
        assert self._parent is not None
        self._selector.unregister(self._parent)
        if self.state < State.HIDING:
            self._drain("the program that started this node is gone")
        self._stop()

    def _heard(self, message: control.Message) -> None:
        match message:
            case control.Ready():
                self._introduce()
                if self._crew.served and self.state is State.STARTING:
                    self._announce()
            case control.Heard():
                self._agent.tell(message)

    def _announce(self) -> None:
        self._happened(Event.ANNOUNCED)
        if cluster.needs_agent(self._config):
            self._start_agent()
        self._log.info(
            "serving",
            node=self._ground.member.id,
            **self._addresses(),
            workers=len(self._crew.slots),
            steering=self._ground.member.steering,
        )
        self._notifier.ready()
        if self._reload_again:
            self._reload()
        if self._parent is not None:
            pids = [slot.worker.pid for slot in self._crew.slots if slot.worker is not None]
            ready = {"pid": self._machine.pid(), "workers": pids, **self._addresses()}
            with contextlib.suppress(BrokenPipeError):  # its end says so too, and is dealt with there
                self._parent.sendall(json.dumps(ready).encode() + b"\n")

    def _addresses(self) -> dict[str, str | int]:
        host, port = self._ground.addresses[JUNCTION]
        others = {door: str(Address(*at)) for door, at in self._ground.addresses.items() if door != JUNCTION}
        if self._config.unix:
            others["unix"] = f"unix://{self._config.unix}"
        return {"host": host, "port": port, **others}

    # Its children, as they begin.

    def _fork_worker(self, slot: Slot, part: int) -> Process:
        doors = [*slot.listeners]

        def make(machine: Machine, channel: control.Channel, kept: Sequence[socket.socket]) -> Program:
            return self._worker(slot, part, machine, channel, dict(zip(doors, kept, strict=True)))

        return Process(slot, part, make, lambda: self._close_what_is_ours(slot), self._signals, self._machine)

    def _worker(
        self,
        slot: Slot,
        part: int,
        machine: Machine,
        channel: control.Channel,
        listeners: Mapping[str, socket.socket],
    ) -> Worker:
        log = self._log.bind(process="worker", worker=slot.number, pid=machine.pid())
        hears = cluster.hears_of_nodes(self._config.cluster)
        heard = (lambda address: channel.send(control.Heard(str(address)))) if hears else None
        node = OwnNode(self._ground.member, skywalker.__version__, slot.number, heard, machine)
        return Worker(
            node,
            self._config,
            listeners,
            channel,
            log,
            self._shared.part(part),
            self._credentials and self._credentials.told_by(log),
            succeeds=slot.worker is not None,
            machine=machine,
            hand=self._shared.hands.hand(part),
        )

    def _fork_agent(self) -> Child:
        last = snapshots.content(self._agent.snapshot) if self._agent.snapshot else ()

        def make(machine: Machine, channel: control.Channel, _: Sequence[socket.socket]) -> Program:
            log = self._log.bind(process="agent", pid=machine.pid())
            credentials = self._credentials and self._credentials.told_by(log)
            return self._assemble(self._config, self._ground, credentials, last, channel, log, self._shared, machine)

        return Child(AGENT, make, [], lambda: self._close_what_is_ours(None), self._signals, self._machine)

    def _close_what_is_ours(self, but: Slot | None) -> None:
        self._selector.close()
        self._signals.close()
        self._notifier.close()
        self._ground.close(but_admin=but is None)
        if self._parent is not None:
            self._parent.close()
        self._agent.close()
        self._crew.close(but)

    def _start_agent(self) -> None:
        self._agent.start()
        self._introduce()

    def _introduce(self) -> None:
        if self._config.admin:
            self._agent.introduce()

    # Reloading.

    def _reload(self) -> None:
        """Go on with the settings as they are now, if they are right."""
        if self.state >= State.HIDING or self._read_again is None:
            return
        if self.state is not State.SERVING:
            self._reload_again = True
            return
        self._reload_again = False
        # Said first: the manager waits for the end of what it asked for, even if it comes to nothing.
        self._notifier.reloading()
        try:
            config, waiting = reload.merged(self._config, self._read_again())
            exposure.check(config, self._ground.addresses)
            credentials = Credentials.of(config, self._log, self._machine.monotonic)
        except SkywalkerError as error:
            self._shared.node[metrics.RELOADED.cell("refused")] += 1
            self._log.error("reload-refused", reason=error)
            self._notifier.ready()
            return
        if waiting:
            self._log.warning("restart-needed", settings=",".join(waiting))
        self._log.info("reloading")
        self._notifier.takes(len(self._crew.slots) * (config.drain_timeout_s + MARGIN_S))
        self._happened(Event.RELOADED)
        self._before = self._config, self._credentials
        self._go_on_with(config, credentials)
        # Until the last of those is gone that beat as they were told before. If this fails, some beat as told now.
        self._watch(max(self._patience_s, config.watchdog_s))
        self._renew_agent(self._before[0])  # it reads the files that the settings name, too
        self._rollout = Rollout(self._crew, config.drain_timeout_s)

    def _go_on_with(self, config: Config, credentials: Credentials | None) -> None:
        self._config, self._credentials = config, credentials
        self._log.use(config.log_level, config.log_format)

    def _renew_agent(self, before: Config) -> None:
        was, is_to_be = (cluster.registered_as(config.cluster) for config in (before, self._config))
        self._agent.renew(wanted=cluster.needs_agent(self._config), forgets=was not in (None, is_to_be))

    def _reloaded(self, rollout: Rollout) -> None:
        self._happened(Event.RENEWED)
        self._rollout = None
        failed = rollout.failed
        if failed is not None:
            # Or the next worker that dies would have one that cannot start in its place.
            refused = self._config
            self._go_on_with(*self._before)
            self._renew_agent(refused)
            why = "its successor did not come to serve, so the settings are as before, but for workers replaced already"
            self._log.error("reload-failed", worker=failed.number, reason=why)
        else:
            self._log.info("reloaded")
            self._watch(self._config.watchdog_s)
        self._shared.node[metrics.RELOADED.cell("failed" if failed is not None else "done")] += 1
        self._notifier.ready()
        if self._reload_again:
            self._reload()

    # The end.

    def _drain(self, reason: str) -> None:
        """Be found no more; then let nobody in, and have calls that wait get their time."""
        timeout_s = self._config.drain_timeout_s
        self._log.info("draining", reason=reason, timeout_s=timeout_s)
        self._notifier.stopping(timeout_s + MARGIN_S)
        self._happened(Event.DRAINED)
        self._rollout = None
        now = self._machine.monotonic()
        self._stop_at = now + timeout_s
        self._agent.drain()
        self._doors_close_at = now if self._agent.left else now + min(LEAVE_S, timeout_s / 2)

    @property
    def _is_idle(self) -> bool:
        """Whether, in a node that drains, no call waits any more, and nobody is sent here."""
        return self.state is State.DRAINING and self._crew.is_idle and self._agent.left

    def _close_doors(self) -> None:
        self._happened(Event.HIDDEN)
        self._doors_close_at = None
        self._crew.drain(self._ground.outlived)

    def _stop(self) -> None:
        if self.state is not State.STOPPING:
            self._happened(Event.STOPPED)
            self._stop_at = self._doors_close_at = None
            self._crew.stop()
