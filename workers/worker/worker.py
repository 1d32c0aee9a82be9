"""A worker process: one loop, one thread, its share of the connections and of the topics."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Final

from skywalker.config import Config
from skywalker.journal.header import Origin
from skywalker.journal.writer import Writer
from skywalker.members import Place
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.recording import Recording
from workers.calls.worker_states import Event, State
from workers.doors.client import Client
from workers.doors.door import Door
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient
from workers.engine.credentials import Credentials
from workers.engine.loop import Alarm, Loop, Turn
from workers.engine.machine import Machine
from workers.engine.points import reached
from workers.engine.signals import Signals
from workers.ipc import exits, snapshots
from workers.ipc.control import (
    ASKS_ONLY,
    Begin,
    Channel,
    Connect,
    Drain,
    Idle,
    Inspect,
    Lend,
    Message,
    Ready,
    Replaced,
    Return,
    Ring,
    Stop,
)
from workers.setup.cluster import trust
from workers.setup.ground import JUNCTION, PUBSUB, UNIX
from workers.stats.close_reasons import GOODBYE
from workers.stats.counters import Counters
from workers.stats.hands import Hand
from workers.stats.log import Log
from workers.worker.heap import Heap, keep_some
from workers.worker.heartbeat import Heartbeat
from workers.worker.hub import Hub
from workers.worker.inspection import Inspection

GARBAGE: Final = (10_000, 10, 1_000)
"""When the collector looks through objects: young ones, survivors, all of them. What ends here is unlinked and needs
no collector; to look for it among a million calls that wait would stop them all for half a second. See heap.py."""

DECIDED_WITHIN_S: Final = 1.0
"""Seconds for another worker to say whether its client has a value that it was given; it takes a round trip."""

READ_WITHIN_S: Final = 0.25
"""Seconds for clients to read the last words to them, and close."""

FIRST_WORD_S: Final = 0.5
"""Seconds for those who have just connected to say something, and be answered, as their node begins to drain."""

RING_AGAIN_S: Final = 1.0
"""Seconds until a ring that came without its file is asked for again."""

SAY_AGAIN_S: Final = 0.1
"""Seconds until a supervisor that had no room for what it waits for is told again."""

PASSED: Final = 8
"""Descriptors that its supervisor passes for a while, and which a worker keeps back besides those of its siblings: of
files, listeners, and agents that ask."""

DIALECTS: Final[Mapping[str, type[Client]]] = {JUNCTION: JunctionClient, UNIX: JunctionClient, PUBSUB: PubSubClient}
"""What is spoken at each door."""

NOT_OURS: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
"""Signals of the terminal go to the whole process group, but are for the supervisor."""


class Worker:
    """One worker, from its fork to its end. It has no listeners if it is forked into a node that drains."""

    def __init__(
        self,
        node: OwnNode,
        config: Config,
        listeners: Mapping[str, socket.socket],
        channel: Channel,
        log: Log,
        cells: memoryview[int],
        credentials: Credentials | None,
        *,
        succeeds: bool,
        machine: Machine,
        hand: Hand,
    ) -> None:
        """One that `succeeds` another is ready to; any other once it hears clients."""
        self._node = node
        self._config = config
        self._listeners = listeners
        self._channel = channel
        self._log = log
        self._cells = cells
        self._credentials = credentials
        self._succeeds = succeeds
        self._machine = machine
        self._hand = hand
        self._alarm = Alarm()  # by which its draining, leaving or closing is over
        self._patience = Alarm()  # with those who have said nothing so far
        self._ring_again = Alarm()

    def run(self) -> int:
        """Serve until told to stop; return the exit status."""
        gc.freeze()  # what came with the fork stays: no use in looking through it, or copying its pages, ever again
        gc.set_threshold(*GARBAGE)
        keep_some()
        faulthandler.enable()  # where it hangs or dies, it says on standard error
        self.begin()
        while self.turn():
            pass
        return exits.OK

    def begin(self) -> None:
        """Take up its work, which it does in turns."""
        machine = self._machine
        signals = machine.signals([signal.SIGTERM], ignored=NOT_OURS)
        signals.open()
        # However many clients there are: it is linked to each sibling, and to the one before, and may be so anew.
        self._kept_back = machine.keep_back(2 * self._node.workers + PASSED)
        clock = machine.monotonic
        counters = Counters(self._cells, clock, machine.random)
        turn = Turn(machine, counters, self._hand, self._config.limits)
        self._loop = loop = Loop(turn)
        loop.add(signals.fileno(), _Ready(lambda: self._signalled(signals)))
        config = self._config
        self._hub = hub = Hub(
            self._node,
            config.limits,
            loop,
            turn,
            self._log,
            machine,
            self._begin_recording(turn),
            Admission(config.access, config.limits, turn, self._log, trust(config)),
            self._credentials,
        )
        slot = self._node.slot
        self._doors = {(slot, door): self._door(door, listener) for door, listener in self._listeners.items()}
        hub.open(self._open)
        loop.add(self._channel.fileno(), _Ready(self._hear))
        Heap(turn, hub.clients).look()
        Heartbeat(hub, self._config.watchdog_s).beat()
        if self._succeeds:
            self._say(Ready())
        self._was_idle = False

    def turn(self) -> bool:
        """Do one turn, or several that change nothing here; return whether there are to be more."""
        hub = self._hub
        standing = hub.standing
        if standing.draining or standing.leaving:
            self._loop.turn(patient=not self._was_idle)
        else:
            self._loop.turns()
        if not (standing.draining or standing.leaving):
            return True
        idle = self._is_idle()
        if idle and self._was_idle:
            # One more turn has read, and refused, what the connections held that it accepted last.
            self._released()
        self._was_idle = idle and not self._was_idle
        if standing.leaving or (standing.replaced and not standing.node_drains):
            hub.peers.hand_over()
            hub.turn.end()  # or what goes by siblings would be written only once something else happens
        if standing.state is State.LEAVING and hub.has_left() and hub.peers.let_go():
            self._close()
        if standing.state is State.CLOSING and not (hub.clients or hub.unsent):
            self._end()
        if standing.state is not State.ENDED:
            return True
        if hub.recording is not None:
            hub.recording.close()
        return False

    def wait(self) -> float | None:
        """Return the seconds until there is a turn to do, whatever comes; None if that depends on others."""
        return self._hub.turn.wait(patient=not self._was_idle)

    def _door(self, door: str, listener: socket.socket) -> Door:
        return Door(listener, self._config.backlog, DIALECTS[door], self._hub.clients)

    def _begin_recording(self, turn: Turn) -> Recording | None:
        settings, node = self._config.journal_settings, self._node
        if settings is None:
            return None
        origin = Origin("node", node.id, node.name, node.slot)
        return Recording(
            Writer(settings, origin, self._log.warning, self._log.info), settings.sample, turn, self._machine.random
        )

    def _hear(self) -> None:
        while True:
            try:
                with self._kept_back:
                    received = self._channel.receive()
            except BlockingIOError:
                return
            if received is None:
                self._log.error("supervisor-gone")
                os._exit(exits.OK)
            self._obey(*received)

    def _say(self, message: Message) -> None:
        """Say what the supervisor waits for. There may be no room: of nodes that would join it is told at any rate."""
        if not self._channel.send(message):
            again_at = self._machine.monotonic() + SAY_AGAIN_S
            Alarm().set(self._hub.turn, again_at, lambda: self._say(message))

    def _visit_all(self) -> list[Place]:
        assert self._hub.standing.opening, "later they come by themselves"
        places = self._hub.peers.visit_all()
        door = self._doors.get((self._node.slot, JUNCTION))
        if places and door is not None:
            door.open()  # where other nodes come in; of clients nothing is heard yet
        return places

    def _open(self) -> None:
        assert not self._hub.standing.opening, "who comes in is heard"
        for door in self._doors.values():
            door.open()
        assert reached("a worker lets clients in")
        if not self._succeeds:
            self._say(Ready())

    def _obey(self, message: Message, passed: int | None) -> None:
        match message:
            case Connect(slot=slot, life=life) if passed is not None:
                assert reached("a link is adopted")
                if slot == ASKS_ONLY:
                    self._hub.siblings.serve(passed, bytes.fromhex(life))
                else:
                    self._hub.siblings.connect(slot, passed, bytes.fromhex(life))
            case Begin():
                if self._hub.standing.opening:
                    self._hub.barrier.has_all(self._visit_all())
            case Inspect() if passed is not None:
                Inspection(self._machine.adopt(passed), self._hub.clients).open()
            case Lend(slot=slot, door=name) if passed is not None:
                self._doors[slot, name] = door = self._door(name, self._machine.adopt(passed))
                door.open()
            case Return(slot=slot):
                for at in [at for at in self._doors if at[0] == slot]:
                    self._doors.pop(at).leave()
            case Replaced():
                self._be_replaced()
            case Ring() if passed is not None:
                self._ring_again.off(self._hub.turn)
                snapshot = snapshots.read(passed)
                if snapshot.version == self._node.snapshot.version:
                    self._node.follow(snapshot)  # it only names others who are no nodes of the cluster
                else:
                    self._hub.follow(snapshot)
            case Drain(outlived=outlived):
                self._hub.drain_node()
                self._patience.set(self._hub.turn, self._machine.monotonic() + FIRST_WORD_S, lambda: None)
                if self._hub.standing.leaving:
                    self._say(Idle())  # it was drained alone before, and has nobody left
                for (_, name), door in self._doors.items():
                    if name in outlived:
                        door.leave()
                    else:
                        door.close()
                self._doors = {}
            case Stop():
                self._leave()
            case Connect() | Ring() | Inspect() | Lend():
                # No descriptor was left for what came with it: the last ring holds on for a while, who asks is not
                # answered, and who comes to another slot waits. A sibling would be met nowhere for good.
                self._log.error("no-descriptor", message=type(message).__name__)
                if isinstance(message, Ring):
                    self._want_ring()
                elif isinstance(message, Connect):
                    self.terminate()
            case _:
                raise ValueError(f"the supervisor cannot say {message!r}")

    def _want_ring(self) -> None:
        self._ring_again.set(self._hub.turn, self._machine.monotonic() + RING_AGAIN_S, self._ask_for_ring)

    def _ask_for_ring(self) -> None:
        self._channel.send(Ring())
        self._want_ring()  # there may be no room yet, for this or for what it asks for

    def _signalled(self, signals: Signals) -> None:
        if signal.SIGTERM in signals.read():  # what the supervisor hears besides comes in here, too
            self.terminate()

    def terminate(self) -> None:
        """Drain this one worker. It goes on accepting: a client that is told so comes to another."""
        if self._hub.standing.draining:
            return
        timeout_s = self._config.drain_timeout_s
        self._log.info("worker-draining", timeout_s=timeout_s)
        self._hub.drain()
        if self._hub.standing.state is State.DRAINING_ALONE:  # else it leaves already, and has less time
            self._alarm.set(self._hub.turn, self._machine.monotonic() + timeout_s, self._leave)

    def _be_replaced(self) -> None:
        """Let nobody in any more, and have calls meet at the successor; clients go there when they are told to."""
        self._leave_doors()
        assert reached("a worker is replaced")
        self._hub.be_replaced()

    def _leave_doors(self) -> None:
        for door in self._doors.values():
            door.leave()
        self._doors = {}

    # Its end.

    def _is_idle(self) -> bool:
        """Whether it drains, and nobody relies on it any more."""
        hub, core = self._hub, self._hub.core
        match hub.standing.state:
            case State.REPLACED:
                # An :ack may still tell that a value has arrived, or another would get it too; who shakes hands came
                # here before the successor was there.
                return hub.is_decided() and not (len(hub.clients) or core.orphans or len(hub.admission.strangers))
            case State.DRAINING_ALONE:
                # It goes on accepting, so it is not held up by those who shake hands.
                return not (core.held()[0] or core.orphans or core.moving or core.has_more)
            case State.DRAINING_WITH_NODE:
                if core.held()[0] or core.orphans or core.moving or core.has_more or hub.turn.resting:
                    return False
                return self._patience.at is None or not core.has_silent
        return False

    def _released(self) -> None:
        assert reached("a worker is released")
        if self._hub.standing.state is State.DRAINING_ALONE:
            # Calls of siblings' clients go to our successor.
            self._leave()
        else:
            self._hub.happened(Event.RELEASED)
            self._say(Idle())

    def _leave(self) -> None:
        """Have others' calls meet nobody here any more, and end once those that were meeting somebody know it.

        Who comes from now on waits for the next worker, and would only be closed here: a node whose link has ended
        comes back at once, and a client of the pub/sub door gives up if it is closed three times with nothing acked.
        """
        if not self._hub.standing.leaving:
            self._leave_doors()
            self._hub.leave()
            self._alarm.set(self._hub.turn, self._machine.monotonic() + DECIDED_WITHIN_S, self._close)

    def _close(self) -> None:
        """Have the last words said, and end once they are read."""
        self._hub.happened(Event.DECIDED)
        self._hub.stop()
        self._alarm.set(self._hub.turn, self._machine.monotonic() + READ_WITHIN_S, self._end)

    def _end(self) -> None:
        self._hub.happened(Event.READ)
        for client in self._hub.clients:
            client.close(*GOODBYE)  # the kernel goes on writing to them, as long as nothing is left unread
        self._hub.admission.end()
        self._alarm.off(self._hub.turn)


class _Ready:
    """Has a function called when a descriptor is ready."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def ready(self, events: int) -> None:
        self._call()
