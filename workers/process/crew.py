"""The workers of a node: forked, linked to each other, replaced when they die or are to, and ended in order."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator, Sequence
from socket import AF_UNIX, socket
from typing import BinaryIO, Final

from workers.engine import sockets
from workers.engine.machine import Machine
from workers.ipc import control, exits
from workers.process.slot import Event, Process, Slot, State
from workers.stats import metrics
from workers.stats.log import Log
from workers.stats.shared import SharedCounters

KILL_AFTER_S: Final = 4.0
"""Seconds between telling a worker to stop and killing it: it may need one for calls that are just decided, and two for
the disk that takes its journal."""

ABORTED_S: Final = 1.0
"""Seconds for a worker that hangs to say where, before it is killed."""

FORK_RETRY_S: Final = 1.0
"""Seconds until the next try to fork, when there were no descriptors or no processes left."""


class BootError(Exception):
    """A worker ended before the node served for the first time."""


class Crew:
    """All of them. In a slot that is reloaded there are two for a while: a successor, and who still has clients.

    Nothing here is told to a worker that it must wait for, and no turn waits for a worker.
    """

    def __init__(
        self,
        listeners: Sequence[dict[str, socket]],
        shared: SharedCounters,
        fork: Callable[[Slot, int], Process],
        heard: Callable[[control.Message], None],
        selector: selectors.BaseSelector,
        log: Log,
        machine: Machine,
    ) -> None:
        """`fork` makes a worker for a slot, with a part of the shared counters, or raises OSError as Process does.

        `heard` is told what a worker says, once that has had effect.
        """
        self.slots = [Slot(number, each) for number, each in enumerate(listeners)]
        self.served = False  # every worker has been ready at one time
        self.draining = False
        self._shared = shared
        self._fork = fork
        self._heard = heard
        self._selector = selector
        self._log = log
        self._machine = machine
        self._snapshot: BinaryIO | None = None  # of the ring

    def processes(self) -> Iterator[Process]:
        """Yield all that live."""
        for slot in self.slots:
            yield from slot.processes()

    @property
    def is_over(self) -> bool:
        """Whether none lives or will."""
        return all(slot.restart_at is None and not any(slot.processes()) for slot in self.slots)

    @property
    def is_serving(self) -> bool:
        """Whether there is a worker in each place that serves."""
        return all(slot.worker is not None and slot.worker.state is State.SERVING for slot in self.slots)

    # A turn of the supervisor.

    def turn(self, now: float) -> None:
        """Do what is due."""
        for slot in self.slots:
            if slot.restart_at is not None and slot.restart_at <= now:
                slot.restart_at = None
                self.start(slot)
            self._lend_or_return(slot)
        for process in [*self.processes()]:
            if process.stop_at is not None and process.stop_at <= now:
                self._stop_one(process)
            if process.kill_at is not None and process.kill_at <= now:
                process.kill_at = None
                self._log.warning("killing-worker", worker=process.slot.number, pid=process.pid)
                process.kill()

    def next_at(self) -> float | None:
        """Return when something is due next."""
        times = [slot.restart_at for slot in self.slots]
        times += [at for process in self.processes() for at in (process.stop_at, process.kill_at)]
        return min((at for at in times if at is not None), default=None)

    def _lend_or_return(self, slot: Slot) -> None:
        """Have siblings accept who comes to a slot that waits for a worker.

        Not any more while that starts, since other nodes come to it first.
        """
        if slot.worker is not None:
            lent_to, slot.lent_to = slot.lent_to, []
            for sibling in lent_to:
                if sibling.state is not State.GONE:
                    self.tell(sibling, control.Return(slot.number))
        else:
            for sibling in [*self.processes()]:
                if sibling.state is State.SERVING and sibling not in slot.lent_to:
                    slot.lent_to.append(sibling)
                    for door, listener in slot.listeners.items():
                        if listener.family != AF_UNIX:  # there it has one of its own for the same socket
                            self.tell(sibling, control.Lend(slot.number, door), passed=listener)

    # Birth.

    def start(self, slot: Slot) -> None:
        """Fork a worker for a place that has none; if the machine has no room for it, later.

        Raises BootError for that in a node that has not served yet.
        """
        assert slot.worker is None, "or it would be forgotten"
        try:
            process = self._begin(slot)
        except OSError as error:
            if not self.served:
                raise BootError(f"cannot start worker {slot.number}: {error.strerror}") from error
            self._log.error("cannot-fork", worker=slot.number, reason=error.strerror)
            slot.restart_at = self._machine.monotonic() + FORK_RETRY_S
            return
        slot.worker = process
        self._connect(process)
        if self.draining:
            self.tell(process, control.Drain(), Event.DRAINED)

    def replace(self, slot: Slot, drain_s: float) -> bool:
        """Have a successor for the worker of a slot, which then has `drain_s` for its clients to go there.

        Nothing changes before it is ready. Returns False if the machine has no room for it.
        """
        assert slot.worker is not None, "who would be succeeded"
        assert slot.successor is None, "or it would be forgotten"
        try:
            slot.successor = self._begin(slot)
        except OSError as error:
            self._log.error("cannot-fork", worker=slot.number, reason=error.strerror)
            return False
        slot.successor.drain_s = drain_s
        return True

    def _begin(self, slot: Slot) -> Process:
        part = self._shared.take(slot.number)
        try:
            process = self._fork(slot, part)
        except OSError:
            self._shared.give_back(part)
            raise
        self._shared.part(part)[metrics.PID] = process.pid
        process.listen(self._selector, lambda: self._hear(process))
        if self._snapshot is not None:
            self.tell(process, control.Ring(), passed=self._snapshot)
        return process

    def _connect(self, process: Process) -> None:
        """Link a worker that owns topics from now on to all others: they ask it, and it asks those that own some."""
        assert process is process.slot.worker, "no other owns topics"
        for other in [*self.processes()]:
            if other is process or other is other.slot.successor:
                continue
            try:
                ours, theirs = sockets.link(self._machine)
            except OSError as error:
                # It lacks links, and will be replaced as any that dies.
                self._log.error("cannot-link", worker=process.slot.number, reason=error.strerror)
                process.kill()
                return
            with ours, theirs:
                their_slot = control.ASKS_ONLY if other is other.slot.outgoing else other.slot.number
                life = self._shared.hands.life
                self.tell(process, control.Connect(their_slot, life(other.part)), passed=ours)
                self.tell(other, control.Connect(process.slot.number, life(process.part)), passed=theirs)
        self.tell(process, control.Begin())

    # What is said.

    def tell(
        self,
        process: Process,
        message: control.Message,
        event: Event | None = None,
        passed: control.HasFileno | None = None,
    ) -> None:
        """Say something to a worker, which is an event in its life."""
        if not process.channel.send(message, passed):
            # A worker that has long not read what it is told is hung; one that is dead does not mind.
            self._log.error("worker-deaf", worker=process.slot.number, pid=process.pid)
            process.kill()
        if event is not None:
            self._happened(process, event)

    def _happened(self, process: Process, event: Event) -> None:
        """Have it change the state of a process as the table says, for all to see."""
        process.happened(event)
        self._shared.part(process.part)[metrics.STATE] = process.state
        serve = sum(each.state is State.SERVING for each in self.processes())
        self._shared.node[metrics.SERVING.at] = serve

    def follow(self, snapshot: BinaryIO) -> None:
        """Tell all of the ring, and those yet to come, for which the file must stay open."""
        self._snapshot = snapshot
        for process in self.processes():
            self.tell(process, control.Ring(), passed=snapshot)

    def _hear(self, process: Process) -> None:
        if process.state is State.GONE:
            return  # it was reaped in this same turn
        received = process.hear()
        if received is None:
            return
        message, _ = received
        match message:
            case control.Ready():
                self._happened(process, Event.READY)
                if process is process.slot.successor and process.state is not State.STOPPING:
                    self._succeed(process.slot)
                self.served = self.served or self.is_serving
            case control.Idle():
                self._happened(process, Event.IDLE)
                if process is process.slot.outgoing:
                    self._stop_one(process)
            case control.Ring() if self._snapshot is not None:
                self.tell(process, message, passed=self._snapshot)
        self._heard(message)

    def _succeed(self, slot: Slot) -> None:
        """The successor is ready: it owns the topics from now on."""
        before, slot.worker, slot.successor = slot.worker, slot.successor, None
        assert slot.worker is not None, "it said so"
        assert before is None or slot.outgoing is None, "the one before that has ended"
        if before is not None:
            slot.outgoing = before
            before.stop_at = self._machine.monotonic() + slot.worker.drain_s
            self._shared.node[metrics.RESTARTED.cell("reload")] += 1
            self.tell(before, control.Replaced(), Event.DRAINED)
        self._connect(slot.worker)

    # Death.

    def reap(self) -> None:
        """Have successors for those that are dead. Raises BootError if one ended before the node served."""
        for process in [*self.processes()]:
            if process.is_dead():
                # Its last word may still be there, and what follows from that must find its pid taken.
                self._hear(process)
                self._bury(process, process.reap())

    def _bury(self, process: Process, status: int) -> None:
        expected = process.state is State.STOPPING
        from_outside = process.state is not State.STARTING and not process.is_killed and exits.is_from_outside(status)
        slot = process.slot
        # The place was its alone: whoever has it next replaces this one, be that one on its way already.
        is_replaced = slot.worker is process or (slot.worker is None and slot.successor is process)
        self._happened(process, Event.REAPED)
        slot.forget(process)
        self._shared.give_back(process.part)
        if expected:
            return
        how = exits.how(status)
        if not self.served and not self.draining:
            raise BootError(f"worker {slot.number} ended with {how} before it served")
        if is_replaced:
            cause = "hung" if process.is_hung else "signal" if status < 0 else "status" if status else "ended"
            self._shared.node[metrics.RESTARTED.cell(cause)] += 1
        now = self._machine.monotonic()
        delay: float | None = None
        has_heir = slot.successor is not None and slot.successor.state is not State.STOPPING
        if slot.worker is None and not has_heir and slot.restart_at is None:
            if not from_outside:
                healthy = status == exits.OK or now - process.started_at >= exits.LONG_LIFE_S
                slot.deaths = 1 if healthy else slot.deaths + 1
            # Who served, and was killed, had nothing wrong with it, so another does not keep those waiting that come.
            delay = 0.0 if from_outside else exits.restart_delay(slot.deaths)
            slot.restart_at = now + delay
        write = self._log.info if status == exits.OK else self._log.error
        write("worker-ended", worker=slot.number, pid=process.pid, how=how, restart_s=delay)

    def abort(self, process: Process) -> None:
        """End a worker whose loop does not turn, which says on standard error where it hangs, if it can."""
        if not process.is_hung:
            process.is_hung = True
            self._log.error("worker-hung", worker=process.slot.number, pid=process.pid)
            process.kill_at = self._machine.monotonic() + ABORTED_S
            process.abort()

    # The end.

    def drain(self, outlived: list[str]) -> None:
        """Have all accept nothing new, and say when none of their clients' calls waits any more.

        Who has connected already is let in, except at doors whose listeners outlive the node: the next one does.
        """
        assert not self.draining, "a node drains once"
        self.draining = True
        for slot in self.slots:
            if slot.worker is not None and slot.successor is not None:
                self._stop_one(slot.successor)  # it comes too late
            for process in slot.processes():
                if process.state is State.STOPPING:
                    continue
                is_new = process.state in (State.STARTING, State.SERVING)
                self.tell(process, control.Drain(outlived), Event.DRAINED if is_new else None)
            slot.close_listeners()

    @property
    def is_idle(self) -> bool:
        """Whether, of those that drain, no call waits any more."""
        return all(process.state in (State.IDLE, State.STOPPING) for process in self.processes())

    def stop(self) -> None:
        """Tell all to end, and kill those that do not."""
        for slot in self.slots:
            slot.restart_at = None
        for process in [*self.processes()]:
            self._stop_one(process)

    def _stop_one(self, process: Process) -> None:
        process.stop_at = None
        if process.state is not State.STOPPING:
            kill_at = self._machine.monotonic() + KILL_AFTER_S
            process.kill_at = min(kill_at, process.kill_at or kill_at)
            self.tell(process, control.Stop(), Event.STOPPED)

    def kill_all(self) -> None:
        """End all at once."""
        for process in [*self.processes()]:
            process.kill()
            process.reap()
            process.slot.forget(process)

    def close(self, but: Slot | None) -> None:
        """In a child, close what is not its own; the listeners of one slot may be."""
        for slot in self.slots:
            for process in slot.processes():
                process.channel.close()
            if slot is not but:
                slot.close_listeners()
