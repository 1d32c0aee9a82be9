"""ZeroMQ that is none: as much of its sockets as Silk asks for, over the simulated network.

What is sent waits at its sender until there is a connection, and then until the other side has room: at most as many
messages as the sender's high-water mark says. A connection that is lost is made anew, by whoever made it; what was on
its way is lost with it, and what still waited goes then. Whoever is bound keeps nothing for one whose connection is
lost, and may read what came by the next one before what had come by that. That these sockets do as real ones is tested.
"""

from __future__ import annotations

import bisect
import errno
import operator
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

import zmq

from tests.simulation.kernel import NEVER, Killed, Task
from tests.simulation.machine import Net
from tests.simulation.plan import ROOM

Frames = list[bytes]

HWM: Final = 1000
"""Messages, where nothing else is said."""

RECONNECT_MS: Final = 100
"""The same, between two attempts to connect."""

HANDSHAKES: Final = 3
"""Ways there and back, until both sides may say something."""

READ_S: Final = 0.01
"""Seconds between two looks whether all was read of one that has ended."""

RESEND_S: Final = 0.2
"""Seconds until TCP sends again what nobody has said to have, and then twice as long each time."""

LATE_S: Final = 0.3
"""Seconds that a message may be late which others overtake, at most."""

LOST: Final = "lost"
TWICE: Final = "twice"
LATE: Final = "late"
"""What may become of a message: no TCP would do that, but whoever passes it on may."""

ALIASES: Final = {"localhost": "127.0.0.1"}


class ZeroMQ:
    """All its connections of one network."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.kernel = net.kernel
        self.bound: dict[str, Socket] = {}  # by endpoint
        self.attempts: Counter[str] = Counter()
        """How often somebody has tried to connect where."""
        self.fate: Callable[[int, Frames], str] = lambda *_: ""
        """What becomes of a message from a kind of socket: one of LOST, TWICE and LATE, or nothing."""
        self.said: Callable[[Task, Frames], None] = lambda *_: None
        """Told what a process sends."""
        self.heard: Callable[[Task, Frames], None] = lambda *_: None
        """Told what a process reads."""
        self.connections: list[Connection] = []
        net.ended.append(self._end)

    def arrival(self, here: str, there: str) -> float:
        """Return when what is written now is there.

        TCP tries ever more rarely, so after a cut it may take once more as long as what was said had to wait in it.
        """
        at, now = self.net.arrival(here, there), self.kernel.time()
        parted_until = self.net.parted.get((here, there), 0.0)
        return at if parted_until <= now else at + self.net.luck.random() * (parted_until - now)

    def cut(self, host: str) -> None:
        """Cut all connections of a host; they are made anew."""
        for each in [*self.connections]:
            if host in (each.ours.host, each.host):
                each.reset_both()

    def between(self, here: str, there: str) -> list[Connection]:
        """Return the connections that two hosts have."""
        return [
            each
            for each in self.connections
            if each.theirs is not None and {each.ours.host, each.host} == {here, there}
        ]

    def _end(self, task: Task) -> None:
        has_power = not self.net.is_off(task.host)
        for sock in [each for each in self.bound.values() if each.task is task]:
            sock.unbind() if has_power else sock.vanish()
        for each in [*self.connections]:
            if each.ours.task is task and not each.ours.context.is_over:
                each.end() if has_power else each.vanish()


class Way:
    """One direction of a connection."""

    def __init__(self, connection: Connection, most: int) -> None:
        self.waiting: deque[Frames] = deque()
        self._connection = connection
        self._most = most
        self._flying: deque[tuple[float, Frames]] = deque()
        self._size = 0
        self._last_at = 0.0
        self.sender: Socket | None = None
        self.receiver: Socket | None = None

    def open(self, sender: Socket, receiver: Socket) -> None:
        """There is a connection."""
        self.sender, self.receiver = sender, receiver
        self.pump()

    def lose(self, *, keeps: bool) -> None:
        """There is none any more; what waits is kept for the next."""
        self.sender = self.receiver = None
        self._flying.clear()
        self._size, self._last_at = 0, 0.0
        if not keeps:
            self.waiting.clear()

    def put(self, frames: Frames) -> bool:
        """Have something sent; return False if too much waits already."""
        if len(self.waiting) >= self._most:
            return False
        self.waiting.append(frames)
        self.pump()
        return True

    def pump(self) -> None:
        """Give to the kernel what it has room for."""
        if self.sender is None or self.receiver is None:
            return
        while self.waiting and (not self._size or self._size + sum(map(len, self.waiting[0])) <= ROOM):
            frames = self.waiting.popleft()
            self._size += sum(map(len, frames))
            for frame in frames:
                self._connection.zeromq.kernel.trace_bytes(frame)
            if self._connection.is_mute:
                self._connection.sends_again()
            else:
                self._fly(frames, self.sender, self.receiver)
        if not self.waiting:
            self._connection.is_empty(self)

    def _fly(self, frames: Frames, sender: Socket, receiver: Socket) -> None:
        zeromq = self._connection.zeromq
        fate = zeromq.fate(sender.kind, frames)
        if fate == LOST:
            self._size -= sum(map(len, frames))
            return
        at = max(self._last_at, zeromq.arrival(sender.host, receiver.host))
        if fate == LATE:
            at += zeromq.net.luck.random() * LATE_S
        else:
            self._last_at = at
        for _ in range(2 if fate == TWICE else 1):
            bisect.insort(self._flying, (at, frames), key=operator.itemgetter(0))
            self._look(at)
        self._size += sum(map(len, frames)) * (fate == TWICE)

    def _look(self, at: float) -> None:
        life = self._connection.life
        self._connection.zeromq.kernel.at(at, lambda: self.take() if self._connection.life == life else None)

    def take(self) -> None:
        """Let the receiver have what has arrived, as far as it has room."""
        receiver, now = self.receiver, self._connection.zeromq.kernel.time()
        if receiver is None or not self._flying:
            return
        if receiver.task.stopped_until > now:
            self._look(receiver.task.stopped_until)
            return
        while self._flying and self._flying[0][0] <= now and receiver.has_room_for(self._connection):
            _, frames = self._flying.popleft()
            self._size -= sum(map(len, frames))
            if max(map(len, frames)) > receiver.get(zmq.MAXMSGSIZE, NEVER):
                self._connection.reset_both()
                return
            receiver.take(self._connection, frames)
        self.pump()

    def all_here_at(self) -> float:
        """Return when the last that the kernel has will have arrived."""
        return self._flying[-1][0] if self._flying else self._last_at

    def is_read(self) -> bool:
        """Whether the receiver has all that the kernel had, or never will."""
        return not self._flying or self.receiver is None or not self.receiver.task.lives


class Connection:
    """From one that connects to one that is bound, made anew whenever it is lost."""

    def __init__(self, zeromq: ZeroMQ, ours: Socket, endpoint: str) -> None:
        self.zeromq = zeromq
        self.ours = ours
        self.endpoint = endpoint
        self.host = endpoint.removeprefix("tcp://").rpartition(":")[0]
        self.life = 0  # goes up with each that is lost
        self.name = b""  # by which the other side knows it
        self.theirs: Socket | None = None
        self.topics: list[bytes] = []
        """What whoever broadcasts knows to be wanted."""
        self.is_over = False
        self.is_mute = False
        """Nothing passes, and nobody was told."""
        self._is_forgotten = False  # the machine at the other end has lost power since
        self._resends_after_s = 0.0
        self.there = Way(self, ours.get(zmq.SNDHWM, HWM))
        self.back = Way(self, HWM)
        self._pause_ms = ours.get(zmq.RECONNECT_IVL, RECONNECT_MS)
        self._closes_at = NEVER
        zeromq.connections.append(self)
        self._attempt()

    def _later(self, at: float, call: Callable[[], None]) -> None:
        life = self.life
        self.zeromq.kernel.at(at, lambda: call() if self.life == life and not self.is_over else None)

    def _attempt(self) -> None:
        zeromq, now = self.zeromq, self.zeromq.kernel.time()
        if self.ours.task.stopped_until > now:
            self._later(self.ours.task.stopped_until, self._attempt)
            return
        zeromq.attempts[self.endpoint] += 1
        there_s = zeromq.arrival(self.ours.host, self.host) - now
        back_s = zeromq.arrival(self.host, self.ours.host) - now
        bound = zeromq.bound.get(self.endpoint)
        most_s = self.ours.get(zmq.CONNECT_TIMEOUT, 60_000) / 1000
        if there_s + back_s > most_s or zeromq.net.is_off(self.host):
            self._later(now + most_s, self._retry)
        elif bound is None:
            self._later(now + there_s + back_s, self._retry)
        else:
            # The kernel of one that stands still takes the connection; it says nothing for so long.
            done_at = max(now, bound.task.stopped_until) + HANDSHAKES * (there_s + back_s)
            patient_until = now + self.ours.get(zmq.HANDSHAKE_IVL, 30_000) / 1000
            call = self._retry if done_at > patient_until else lambda: self._made(bound)
            self._later(min(done_at, patient_until), call)

    def _retry(self) -> None:
        pause_ms = self._pause_ms + self.zeromq.net.luck.random() * self.ours.get(zmq.RECONNECT_IVL, RECONNECT_MS)
        self._pause_ms = min(2 * self._pause_ms, self.ours.get(zmq.RECONNECT_IVL_MAX, 0) or self._pause_ms)
        self._later(self.zeromq.kernel.time() + pause_ms / 1000, self._attempt)

    def _made(self, bound: Socket) -> None:
        if self.zeromq.bound.get(self.endpoint) is not bound or not bound.task.lives:
            self._retry()
            return
        self.theirs = bound
        self._pause_ms = self.ours.get(zmq.RECONNECT_IVL, RECONNECT_MS)
        self.name = self.zeromq.net.luck.randbytes(5)
        self.back = Way(self, bound.get(zmq.SNDHWM, HWM))
        bound.peers[self.name] = self
        self.back.open(bound, self.ours)
        self.there.open(self.ours, bound)
        self.tell_topics()

    def tell_topics(self) -> None:
        """Have the other side know what is wanted, a little later."""
        at = self.zeromq.arrival(self.ours.host, self.host)
        wanted = [*self.ours.topics]
        if self.theirs is not None:
            self._later(at, lambda: self.topics.extend(each for each in wanted if each not in self.topics))

    def reset_both(self) -> None:
        """It is lost, and both sides know that."""
        if self.theirs is not None:
            self.zeromq.kernel.note(self.ours.task.name, f"lost its connection to {self.endpoint}")
            self._forget(keeps=not self.is_over)
            if not self.is_over:
                self._retry()

    def lose(self) -> None:
        """Nothing passes any more, and nobody is told, unless kernels are to look whether there is somebody."""
        self.is_mute = True
        self._give_up()

    def _give_up(self) -> None:
        get, kernel, life = self.ours.get, self.zeromq.kernel, self.life
        if get(zmq.TCP_KEEPALIVE, 0):
            probes_s = get(zmq.TCP_KEEPALIVE_INTVL, 0) * get(zmq.TCP_KEEPALIVE_CNT, 0)
            at = kernel.time() + get(zmq.TCP_KEEPALIVE_IDLE, 0) + probes_s
            kernel.at(at, lambda: self.reset_both() if self.life == life else None)

    def vanish(self) -> None:
        """One side has lost power: the other is told once it has something to say, and the power is back."""
        self.is_mute = self._is_forgotten = True
        self._give_up()
        if not self.ours.task.lives and not self.is_over:
            self.is_over = True
            self.there.waiting.clear()
            self.zeromq.connections.remove(self)

    def sends_again(self) -> None:
        """Something was written that nobody says to have."""
        if self._is_forgotten and not self._resends_after_s:
            self._resends_after_s = RESEND_S
            self._resend()

    def _resend(self) -> None:
        kernel, life = self.zeromq.kernel, self.life

        def again() -> None:
            if self.life == life:
                dead = self.ours if self.is_over else self.theirs
                assert dead is not None, "it is connected"
                if self.zeromq.net.is_off(dead.host):
                    self._resend()
                else:
                    self.reset_both()

        kernel.at(kernel.time() + self._resends_after_s, again)
        self._resends_after_s *= 2

    def lose_soon(self) -> None:
        """The other side has ended; it is known here once what it wrote has come."""
        at = max(self.back.all_here_at(), self.zeromq.arrival(self.host, self.ours.host))
        self._later(at, self._lose_once_read)

    def _lose_once_read(self) -> None:
        if self.back.is_read():
            self.reset_both()
        else:
            self._later(self.zeromq.kernel.time() + READ_S, self._lose_once_read)

    def _forget(self, *, keeps: bool) -> None:
        self.life += 1
        if self.theirs is not None:
            self.theirs.peers.pop(self.name, None)
            self.theirs = None
        self.topics = []
        self.is_mute = self._is_forgotten = False
        self._resends_after_s = 0.0
        self.there.lose(keeps=keeps)
        self.back.lose(keeps=False)

    def close(self, linger_ms: int) -> None:
        """Nobody sends more; what still waits has so long to go."""
        now = self.zeromq.kernel.time()
        self._closes_at = now + linger_ms / 1000
        if not self.there.waiting or not linger_ms:
            self.end()
        else:
            self.zeromq.kernel.at(self._closes_at, self.end)

    def is_empty(self, way: Way) -> None:
        """All that waited on a way is on it."""
        if way is self.there and self._closes_at < NEVER:
            self.end()

    def end(self) -> None:
        """It is not made anew. What the kernel has still arrives, and then the other side knows."""
        if self.is_over:
            return
        self.is_over = True
        self.there.waiting.clear()
        self.zeromq.connections.remove(self)
        at = self.there.all_here_at() if self.theirs is not None else 0.0
        self.zeromq.kernel.at(max(at, self.zeromq.kernel.time()), self._forget_once_read)

    def _forget_once_read(self) -> None:
        if self.there.is_read():
            self._forget(keeps=False)
        else:
            self.zeromq.kernel.at(self.zeromq.kernel.time() + READ_S, self._forget_once_read)


Inbox = tuple[Connection, int]
"""Of which connection, and which of its lives, as far as whoever reads it knows of those."""


class Context:
    """The sockets of one process."""

    def __init__(self, zeromq: ZeroMQ, task: Task) -> None:
        self.zeromq = zeromq
        self.task = task
        self.is_over = False
        self._sockets: list[Socket] = []

    def set(self, option: int, value: int) -> None:
        """There is room for any number of sockets."""

    def socket(self, kind: int) -> Socket:
        made = Socket(self, kind)
        self._sockets.append(made)
        return made

    def term(self) -> None:
        """Last words are on their way by then."""
        self.is_over = True

    def destroy(self, linger: int = 0) -> None:
        for each in self._sockets:
            each.close(linger)
        self.is_over = True


class Frame:
    """One that was read."""

    def __init__(self, data: bytes, host: str) -> None:
        self.bytes = data
        self._host = host

    def get(self, what: str) -> str:
        assert what == "Peer-Address", "nothing else is known of it"
        return self._host


class Socket:
    """One that does not wait."""

    def __init__(self, context: Context, kind: int) -> None:
        self.context = context
        self.kind = kind
        self.task = context.task
        self.host = context.task.host
        self.topics: dict[bytes, None] = {}
        self.peers: dict[bytes, Connection] = {}
        """Those who are connected to one that is bound."""
        self._zeromq = context.zeromq
        self._options: dict[int, Any] = {}
        self._connections: dict[str, Connection] = {}
        self._inboxes: dict[Inbox, deque[Frames]] = {}
        self._turns: deque[Inbox] = deque()  # where something is to be read
        self._endpoint = ""

    # As ZeroMQ's.

    def set(self, option: int, value: Any) -> None:
        self._options[option] = value

    def getsockopt_string(self, option: int) -> str:
        assert option == zmq.LAST_ENDPOINT, "nothing else is asked"
        return self._endpoint

    def subscribe(self, topic: str) -> None:
        self.topics[topic.encode()] = None
        for each in self._connections.values():
            each.tell_topics()

    def bind(self, endpoint: str) -> None:
        if endpoint.endswith(":*"):
            endpoint = f"{endpoint[:-1]}{self._zeromq.net.free_port()}"
        if endpoint in self._zeromq.bound:
            raise zmq.ZMQError(errno.EADDRINUSE)
        self._endpoint = endpoint
        self._zeromq.bound[endpoint] = self

    def connect(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        is_path = endpoint.startswith("ipc://")  # where nobody ever is
        is_tcp = endpoint.startswith("tcp://") and host and port.isdecimal() and 0 < int(port) < 65536
        if not is_path and not is_tcp:
            raise zmq.ZMQError(errno.EINVAL)
        if endpoint not in self._connections:
            known_as = endpoint if is_path else f"tcp://{ALIASES.get(host, host)}:{port}"
            self._connections[endpoint] = Connection(self._zeromq, self, known_as)

    def disconnect(self, endpoint: str) -> None:
        made = self._connections.pop(endpoint, None)
        if made is None:
            raise zmq.ZMQError(errno.ENOENT)
        if self._inboxes.pop((made, 0), None):
            self._turns.remove((made, 0))
        made.end()

    def send(self, frame: bytes, flags: int = 0) -> None:
        self.send_multipart([frame], flags)

    def send_multipart(self, frames: list[bytes], flags: int = 0) -> Any:
        if not self.task.lives:
            raise Killed  # nothing it does on its way out is done
        running = self._zeromq.kernel.running
        if running is not None:
            running.may_write()
        self._zeromq.said(self.task, frames)
        if self.kind == zmq.ROUTER:
            name, *frames = frames
            if name in self.peers:
                self.peers[name].back.put(frames)
        elif self.kind == zmq.PUB:
            for peer in [*self.peers.values()]:
                if any(frames[0].startswith(topic) for topic in peer.topics):
                    peer.back.put(frames)
        else:
            connection = next(iter(self._connections.values()), None)
            if connection is None or not connection.there.put(frames):
                raise zmq.Again
        if running is not None:
            running.wrote()

    def recv_multipart(self, flags: int = 0, copy: bool = True) -> Any:
        if not self._turns:
            raise zmq.Again
        turn = connection, _ = self._turns.popleft()
        inbox = self._inboxes[turn]
        frames = inbox.popleft()
        if inbox:
            self._turns.append(turn)
        else:
            del self._inboxes[turn]
        is_ours = connection.ours is self
        (connection.back if is_ours else connection.there).take()
        self._zeromq.heard(self.task, frames)
        host = connection.host if is_ours else connection.ours.host
        return frames if copy else [Frame(frame, host) for frame in frames]

    def close(self, linger: int | None = None) -> None:
        self.unbind()
        for each in [*self._connections.values()]:
            each.close(self.get(zmq.LINGER, 0) if linger is None else linger)
        self._connections.clear()

    # For the other side.

    def get(self, option: int, default: float) -> Any:
        """Return an option that was set."""
        return self._options.get(option, default)

    def unbind(self) -> None:
        """Listen no more; whoever is connected notices."""
        if self._zeromq.bound.get(self._endpoint) is self:
            del self._zeromq.bound[self._endpoint]
            for each in [*self.peers.values()]:
                each.back.waiting.clear()
                each.lose_soon()

    def vanish(self) -> None:
        """Listen no more, of which nobody is told: there is no power."""
        del self._zeromq.bound[self._endpoint]
        for each in self.peers.values():
            each.vanish()

    def _inbox(self, connection: Connection) -> Inbox:
        # Who is bound knows nothing of it that the next one is made by the same.
        return connection, 0 if connection.ours is self else connection.life

    def has_room_for(self, connection: Connection) -> bool:
        """Whether it reads more of what comes by a connection."""
        return len(self._inboxes.get(self._inbox(connection), ())) < int(self.get(zmq.RCVHWM, HWM))

    def take(self, connection: Connection, frames: Frames) -> None:
        """Take in a message."""
        key = self._inbox(connection)
        inbox = self._inboxes.setdefault(key, deque())
        inbox.append([connection.name, *frames] if self.kind == zmq.ROUTER else frames)
        if len(inbox) == 1:
            self._turns.append(key)

    def has_message(self) -> bool:
        """Whether there is one to read."""
        return bool(self._turns)
