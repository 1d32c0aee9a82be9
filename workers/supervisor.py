"""The first process of a node: forks the workers, replaces those that die, and ends them in order.

It carries no traffic and does nothing that can block. Sockets that processes share are
described in sockets.py, what is said over the channels in control.py, and what may happen to
a worker in lifecycle.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from typing import BinaryIO, Final

import skywalker
from skywalker.address import Address
from skywalker.config import Config
from skywalker.wire import frames
from workers import birth, cluster, control, exits, snapshots, sockets
from workers.ground import JUNCTION, PUBSUB, Ground
from workers.identity import StateError
from workers.keeper import Keeper
from workers.lifecycle import Event, State
from workers.log import Log
from workers.node import Node
from workers.signals import Signals
from workers.slot import Slot
from workers.worker import Worker

KILL_AFTER_S: Final = 2.0
"""Seconds between telling a worker to stop and killing it."""

FORK_RETRY_S: Final = 1.0
"""Seconds until the next try to fork, when there were no descriptors or no processes left."""


class BootError(Exception):
    """A worker ended before the node served for the first time."""


class Supervisor:
    """A node, from its start to its end."""

    def __init__(self, config: Config, parent_fd: int = -1) -> None:
        self._config = config
        self._parent_fd = parent_fd
        self._parent: socket.socket | None = None  # the program that started this node, if it wants to know of it
        self._log = Log(process="supervisor")
        self._signals = Signals(
            [signal.SIGTERM, signal.SIGINT, signal.SIGCHLD], ignored=[signal.SIGHUP, signal.SIGPIPE]
        )
        self._slots: list[Slot] = []
        self._agent: Keeper | None = None  # of a node that has something for one to do
        self._served = False  # every worker has been ready once
        self._draining = False
        self._stop_at: float | None = None  # when those that drain are stopped
        self._kill_at: float | None = None  # when those that were stopped are killed

    def run(self) -> int:
        """Serve until told to end; return the exit status. Says in one line what keeps it from starting."""
        try:
            self._ground = ground = Ground(self._config)
        except (sockets.AddressError, StateError) as error:
            print(f"skywalker: {error}", file=sys.stderr)
            return exits.ADDRESS if isinstance(error, sockets.AddressError) else exits.STATE
        with contextlib.closing(ground):
            sockets.allow_many_files()
            self._slots = [Slot(number, listeners) for number, listeners in enumerate(ground.listeners)]
            self._signals.open()
            self._selector = selectors.DefaultSelector()
            self._selector.register(self._signals, selectors.EVENT_READ, self._on_signals)
            if self._parent_fd >= 0:
                self._parent = socket.socket(fileno=self._parent_fd)
                self._selector.register(self._parent, selectors.EVENT_READ, self._on_parent)
            if cluster.needs_agent(self._config.cluster):
                self._agent = Keeper(self._be_agent, self._signals, self._selector, self._follow, self._log)
            try:
                for slot in self._slots:
                    self._start(slot)
                while any(slot.state is not State.GONE or slot.restart_at is not None for slot in self._slots):
                    self._turn()
            except BootError as error:
                print(f"skywalker: {error}", file=sys.stderr)
                return exits.BOOT
            finally:
                self._kill_all()
                if self._agent is not None:
                    self._agent.end()
        self._log.info("ended")
        return exits.OK

    # A turn.

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._wait()):
            key.data()
        now = time.monotonic()
        if self._stop_at is not None and (self._stop_at <= now or self._nobody_waits()):
            self._stop()
        for slot in self._slots:
            if slot.restart_at is not None and slot.restart_at <= now:
                slot.restart_at = None
                self._start(slot)
        if self._agent is not None and self._agent.restart_at is not None and self._agent.restart_at <= now:
            self._agent.start()
        if self._kill_at is not None and self._kill_at <= now:
            self._log.warning("killing-workers", pids=[slot.pid for slot in self._alive()])
            self._kill_all()

    def _wait(self) -> float | None:
        times = [self._stop_at, self._kill_at, *(slot.restart_at for slot in self._slots)]
        times.append(self._agent.restart_at if self._agent else None)
        first = min((at for at in times if at is not None), default=None)
        return None if first is None else max(0.0, first - time.monotonic())

    def _alive(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.state is not State.GONE]

    def _on_signals(self) -> None:
        for number in self._signals.read():
            if number == signal.SIGCHLD:
                self._reap()
            elif self._draining:
                self._stop()
            else:
                self._drain(signal.Signals(number).name)

    def _on_parent(self) -> None:
        # The other end never writes: this is its end, with the program that we are part of.
        assert self._parent is not None
        self._selector.unregister(self._parent)
        if not self._draining:
            self._drain("the program that started this node is gone")
        self._stop()

    def _on_worker(self, slot: Slot) -> None:
        if slot.channel is None:
            return  # it was reaped in this same turn
        try:
            received = slot.channel.receive()
        except BlockingIOError:
            return
        match received:
            case None:
                # It is dead, or as good as: SIGCHLD says so next.
                with contextlib.suppress(KeyError):
                    self._selector.unregister(slot.channel)
            case control.Ready(), _:
                slot.happened(Event.READY)
                self._announce()
            case control.Idle(), _:
                slot.happened(Event.IDLE)
            case control.Heard() as heard, _:
                if self._agent is not None:
                    self._agent.tell(heard)

    def _announce(self) -> None:
        if self._served or any(slot.state is not State.SERVING for slot in self._slots):
            return
        self._served = True
        if self._agent is not None and not self._draining:
            self._agent.start()
        self._log.info(
            "serving",
            node=self._ground.member.id,
            **self._addresses(),
            workers=len(self._slots),
            steering=self._ground.member.steering,
            compiled=not str(frames.__file__).endswith(".py"),
        )
        if self._parent is not None:
            pids = [slot.pid for slot in self._slots]
            ready = {"pid": os.getpid(), "workers": pids, **self._addresses()}
            with contextlib.suppress(BrokenPipeError):  # its end says so too, and is dealt with there
                self._parent.sendall(json.dumps(ready).encode() + b"\n")

    def _addresses(self) -> dict[str, str | int]:
        host, port = self._ground.addresses[JUNCTION]
        addresses: dict[str, str | int] = {"host": host, "port": port}
        if PUBSUB in self._ground.addresses:
            addresses[PUBSUB] = str(Address(*self._ground.addresses[PUBSUB]))
        return addresses

    # Birth.

    def _start(self, slot: Slot) -> None:
        """Fork the worker of a slot; if the machine has no room for it, now or, in a node that serves, later."""
        try:
            self._fork(slot)
        except OSError as error:
            if not self._served:
                raise BootError(f"cannot start worker {slot.number}: {error.strerror}") from error
            self._log.error("cannot-fork", worker=slot.number, reason=error.strerror)
            if slot.state is State.GONE:
                slot.restart_at = time.monotonic() + FORK_RETRY_S
            else:
                os.kill(slot.pid, signal.SIGKILL)  # it lacks links, and will be replaced as any that dies

    def _fork(self, slot: Slot) -> None:
        slot.pid, slot.channel = birth.fork(
            self._signals, f"skywalker-{slot.number}", lambda channel: self._be_worker(slot, channel)
        )
        slot.state = State.STARTING
        slot.started_at = time.monotonic()
        self._selector.register(slot.channel, selectors.EVENT_READ, lambda: self._on_worker(slot))
        for other in self._alive():
            if other is not slot:
                self._link(slot, other)
        if self._agent is not None and self._agent.snapshot is not None:
            self._tell(slot, control.Ring(), None, self._agent.snapshot)
        if self._draining:
            self._tell(slot, control.Drain(), Event.DRAIN)

    def _link(self, a: Slot, b: Slot) -> None:
        ends = sockets.link()
        for slot, end, other in ((a, ends[0], b), (b, ends[1], a)):
            self._tell(slot, control.Link(other.number), None, end)
            end.close()

    def _tell(
        self, slot: Slot, message: control.Message, event: Event | None, passed: control.HasFileno | None = None
    ) -> None:
        assert slot.channel is not None
        if not slot.channel.send(message, passed) and slot.state is not State.GONE:
            # A worker that has long not read what it is told is hung; one that is dead does not mind.
            self._log.error("worker-deaf", worker=slot.number, pid=slot.pid)
            os.kill(slot.pid, signal.SIGKILL)
        if event is not None:
            slot.happened(event)

    def _follow(self, snapshot: BinaryIO) -> None:
        for slot in self._alive():
            self._tell(slot, control.Ring(), None, snapshot)

    def _be_worker(self, slot: Slot, channel: control.Channel) -> int:
        self._close_what_is_ours(slot)
        log = self._log.bind(process="worker", worker=slot.number, pid=os.getpid())
        heard = cluster.hears_of_nodes(self._config.cluster)
        node = Node(self._ground.member, skywalker.__version__, slot.number, channel if heard else None)
        config = self._config
        journal = config.journal_settings
        return Worker(node, config.limits, config.drain_timeout_s, slot.listeners, channel, log, journal).run()

    def _be_agent(self, channel: control.Channel) -> int:
        assert self._agent is not None, "who else makes one"
        last = snapshots.read(os.dup(self._agent.snapshot.fileno())) if self._agent.snapshot else ()
        self._close_what_is_ours(None)
        log = self._log.bind(process="agent", pid=os.getpid())
        return cluster.be_agent(self._config.cluster, self._ground.member, self._ground.near, last, channel, log)

    def _close_what_is_ours(self, but: Slot | None) -> None:
        """In a child, close what is not its own; the listeners of one slot may be."""
        self._selector.close()
        self._signals.close()
        self._ground.close()
        if self._parent is not None:
            self._parent.close()
        if self._agent is not None:
            self._agent.close()
        for slot in self._slots:
            if slot.channel is not None:
                slot.channel.close()
            if slot is not but:
                slot.close_listeners()

    # Death.

    def _reap(self) -> None:
        if self._agent is not None:
            self._agent.reap()
        for slot in self._alive():
            if os.waitid(os.P_PID, slot.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # Its last word may still be there, and what follows from that must find its pid taken.
            self._on_worker(slot)
            _, status = os.waitpid(slot.pid, 0)
            self._bury(slot, os.waitstatus_to_exitcode(status))

    def _bury(self, slot: Slot, status: int) -> None:
        expected = slot.state is State.STOPPING
        slot.happened(Event.EXIT)
        assert slot.channel is not None
        with contextlib.suppress(KeyError):  # its end may have been read already
            self._selector.unregister(slot.channel)
        slot.channel.close()
        slot.channel = None
        if expected:
            return
        how = exits.how(status)
        if not self._served and not self._draining:
            raise BootError(f"worker {slot.number} ended with {how} before it served")
        now = time.monotonic()
        healthy = status == exits.OK or now - slot.started_at >= exits.LONG_LIFE_S
        slot.deaths = 1 if healthy else slot.deaths + 1
        delay = exits.restart_delay(slot.deaths)
        write = self._log.info if status == exits.OK else self._log.error
        write("worker-ended", worker=slot.number, pid=slot.pid, how=how, restart_s=delay)
        slot.restart_at = now + delay

    # The end.

    def _drain(self, reason: str) -> None:
        timeout_s = self._config.drain_timeout_s
        self._log.info("draining", reason=reason, timeout_s=timeout_s)
        self._draining = True
        self._stop_at = time.monotonic() + timeout_s
        if self._agent is not None:
            self._agent.drain()
        for slot in self._slots:
            if slot.state is not State.GONE:
                self._tell(slot, control.Drain(), Event.DRAIN)
            slot.close_listeners()

    def _nobody_waits(self) -> bool:
        """Whether, in a node that drains, no call waits any more, and nobody is sent here."""
        return all(slot.state in (State.IDLE, State.STOPPING, State.GONE) for slot in self._slots) and (
            self._agent is None or self._agent.left
        )

    def _stop(self) -> None:
        if self._kill_at is not None:
            return
        self._stop_at = None
        self._kill_at = time.monotonic() + KILL_AFTER_S
        for slot in self._slots:
            slot.restart_at = None
            if slot.state is not State.GONE:
                self._tell(slot, control.Stop(), Event.STOP)

    def _kill_all(self) -> None:
        self._kill_at = None
        for slot in self._alive():
            os.kill(slot.pid, signal.SIGKILL)
        for slot in self._alive():
            os.waitpid(slot.pid, 0)
            slot.happened(Event.EXIT)


def run(config: Config, parent_fd: int = -1) -> int:
    """Run a node in this process until it is told to end; return the exit status (see exits.py).

    The socket `parent_fd`, unless it is -1, is told the address once every worker serves, and its end ends the node.
    """
    return Supervisor(config, parent_fd).run()
