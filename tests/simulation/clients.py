"""Clients that know the wire and nothing else, and say what a plan has them say.

Each has one connection at a time, and makes another when that is lost. None repeats a call. They speak in spurts, many
of them when something happens to the nodes. Tests that say themselves what is said, and wait for what comes, use
tests/workers/wire_client.py.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgpack

from tests.promises.history import (
    LOST,
    VALUE,
    Call,
    Cancel,
    Connection,
    Given,
    Published,
    Trouble,
    answer_of,
    full,
    pieces,
    value_of,
)
from tests.simulation.ends import READ, WRITE, Address, End
from tests.simulation.kernel import NEVER
from tests.simulation.machine import Net, Poller, Socket
from tests.simulation.plan import PUBLISH as PUBLISHES
from tests.simulation.plan import ClientPlan, Word

REST_S: Final = 0.02
REFUSED_S: Final = 0.3
"""Seconds until a lost connection is made anew, at most; the latter where nobody is."""

PROMPTS: Final = 0.3
"""How often something is published to a topic as soon as somebody has subscribed to it."""

ACK: Final = 4
PUBLISH: Final = 1
SUBSCRIBE: Final = 2


class Client:
    """What they have in common: a connection, which is read as fast as something comes."""

    def __init__(self, net: Net, plan: ClientPlan, host: str, doors: list[Address], topics: list[str]) -> None:
        self.net = net
        self.plan = plan
        self.name = plan.name
        self.topics = topics
        self.task = net.task(plan.name, host, self)
        self.luck = self.task.luck
        self.connections: list[Connection] = []
        self.stops: list[Trouble] = []
        self._spurts = [(net.kernel.now + at, words) for at, words in plan.spurts]
        self.is_done = False
        """It says nothing more."""
        self.mate: Client | None = None
        """Another of the same program, which is told at once what this one comes to know."""
        self._left: deque[Word] = deque()
        """What it has still to say in this spurt."""
        self._machine = net.machine(self.task)
        self._poller: Poller = self._machine.poller()
        self._doors = doors
        self._socket: Socket | None = None
        self._is_connected = False
        self._output = b""
        self._next_at = net.kernel.now + 0.05 * self.luck.random()
        self.task.wake(self._next_at)

    # What a kind of client does.

    def greet(self) -> None:
        """Say the first words."""

    def speak(self, words: list[Word]) -> None:
        """Say these."""
        raise NotImplementedError

    def received(self, data: bytes) -> None:
        """Deal with what has come."""

    def forget(self) -> None:
        """The connection is lost."""

    def under_way(self) -> int:
        """Return how much of what it said waits for its answer."""
        raise NotImplementedError

    def look_back(self) -> None:
        """Find out what the kernel took for it, whether or not it came to read that."""
        for connection in self.connections:
            connection.full = [*full(connection.taken, NEVER if connection.is_mute else connection.closed_at)]

    def half_alive(self) -> Iterator[str]:
        """Yield what is wrong if it has a connection that not exactly one process has the other end of."""
        end = self._socket.end if self._socket is not None and self._is_connected else None
        if end is not None and end.peer is not None and not end.is_lost and end.lost_at == NEVER:
            count = sum(each.end is end.peer for each in self.net.files.values())
            if count != 1:
                yield f"who_moves_arrives: {count} processes have the other end of the connection of {self.name}"

    # Its life.

    def step(self) -> float:
        """Read, and speak."""
        now = self.task.clock()
        if self._poller.poll():
            self._ready()
        if self._socket is None:
            if now < self._next_at:
                return self._next_at
            self._connect()
            return NEVER
        while self._spurts and self._spurts[0][0] <= now:
            self._left.extend(self._spurts.pop(0)[1])
        free = self.plan.depth - self.under_way()
        if self._is_connected and now >= self._next_at and self._left and free > 0 and not self.is_done:
            count = self.luck.randint(1, min(len(self._left), free))
            self.speak([self._left.popleft() for _ in range(count)])
            self._next_at = now + 1e-5 + 2 * self.plan.pause_s * self.luck.random()
        if self.is_done:
            return NEVER
        if self._left:
            return NEVER if self.under_way() >= self.plan.depth or not self._is_connected else self._next_at
        return self._spurts[0][0] if self._spurts else NEVER

    @property
    def connection(self) -> Connection:
        """The one there is, or was last."""
        return self.connections[-1]

    def write(self, data: bytes) -> None:
        """Have this written."""
        self._output += data
        self._flush()

    def _connect(self) -> None:
        made: Socket = self._machine.tcp()
        door = self.luck.choice(self._doors)
        self._socket, self._is_connected, self._output = made, False, b""
        connection = Connection(self.name, self.task.clock(), self.stops, self.net.node_at(door))
        self.connections.append(connection)
        made.end.taken, made.end.room = connection.taken, self.plan.room
        made.connect_ex(door)
        self._poller.register(made.fileno(), READ | WRITE)

    def _ready(self) -> None:
        made = self._socket
        assert made is not None, "it waits for one"
        try:
            if not self._is_connected:
                if made.getsockopt():
                    raise ConnectionRefusedError
                self._is_connected = True
                self.greet()
            self._flush()
            while data := made.recv(65536):
                self.received(data)
            raise EOFError
        except BlockingIOError:
            pass
        except (OSError, EOFError):
            self._lose(made)

    def prompt(self, word: Word) -> None:
        """Say this next, and at once if that can be."""
        if self._socket is not None and self._is_connected:
            now = self.net.kernel.time()
            self._left.appendleft(word)
            self._next_at = min(self._next_at, now)
            self.task.wake(now)

    def stop(self, seconds: float) -> None:
        """Stand still for so long, and read nothing."""
        now = self.net.kernel.now
        self.stops.append(Trouble("slow client", self.name, now, now + seconds))
        self.task.stop(seconds)

    def cut(self, what: str, how: Callable[[End], None] | None = None) -> None:
        """Lose the connection, as when the program is killed: what has come and was not read is lost.

        Before that, `how` is done to it.
        """
        if self._socket is not None and self._socket.end.peer is not None:
            self.net.kernel.note(self.name, what)
            self.connection.is_cut = True
            if how is not None:
                how(self._socket.end)
            self._lose(self._socket)

    def _flush(self) -> None:
        if self._socket is None:
            return
        if self._output:
            try:
                self._output = self._output[self._socket.send(self._output) :]
            except BlockingIOError:
                pass
            except OSError:
                self._output = b""  # what came is still to be read, and then the end
        self._poller.modify(self._socket.fileno(), READ | (WRITE if self._output else 0))

    def _lose(self, made: Socket) -> None:
        now = self.task.clock()
        end, connection = made.end, self.connection  # whenever it came to know
        connection.closed_at = min(now, end.ended_at, end.reset_at, end.mute_at)
        connection.is_mute = end.mute_at < NEVER
        connection.worker = end.worker
        self._poller.unregister(made.fileno())
        made.close()
        connection.taken_until = max(connection.taken_until, self.task.clock())  # which may be later, on a real machine
        self._socket = None
        self.forget()
        self._next_at = now + 0.001 + (REST_S if self._is_connected else REFUSED_S) * self.luck.random()
        self.task.wake(self._next_at)


class Caller(Client):
    """It makes calls in MessagePack; some subscribe, too."""

    def __init__(self, *given: Any) -> None:
        Client.__init__(self, *given)
        self._ids = itertools.count(1)
        self._in_flight: dict[int, Call] = {}
        self._input = b""

    def greet(self) -> None:
        self._input = b""
        self.connection.acks = self.plan.acks
        self.write(_packed([":hello", 0, {"ack": self.plan.acks}]))
        if self.plan.subscribes:
            for topic in self.topics:
                id = next(self._ids)
                self.connection.topics[id] = topic
                self.write(_packed([":subscribe", id, topic]))

    def under_way(self) -> int:
        return len(self._in_flight)

    def speak(self, words: list[Word]) -> None:
        batch = []
        for method, topic, timeout_ms, cancels in words:
            id = next(self._ids)
            value = f"{self.name}.{id}" if method == ":send!" else ""
            frame: list[Any] = [method, id, timeout_ms, topic]
            if method != ":recv!":
                frame.append(value or "group")
            call = Call(self.connection, id, method, topic, value, self.task.clock(), timeout_ms / 1000)
            self._in_flight[id] = self.connection.calls[id] = call
            batch.append(_packed(frame))
            what = f" {value!r}" if value else ""
            self.net.kernel.note(self.name, f"says {call}{what}, for {timeout_ms} ms")
            if cancels:
                unwanted = self.luck.choice([*self._in_flight.values()])
                self.connection.cancels[-id] = Cancel(unwanted)
                batch.append(_packed([":cancel", -id, unwanted.id]))
                self.net.kernel.note(self.name, f"cancels {unwanted}")
        self.write(b"".join(batch))

    def received(self, data: bytes) -> None:
        self._input += data
        while len(self._input) >= 2 and len(self._input) >= (end := 2 + int.from_bytes(self._input[:2], "big")):
            frame, self._input = self._input[2:end], self._input[end:]
            if (reply := _reply(frame)) is not None:
                self._hear(*reply)
            else:
                self.connection.strange.append(f"{frame!r}")

    def _hear(self, method: str, id: int, result: Any) -> None:
        connection, now = self.connection, self.task.clock()
        if method == ":subscribe" and id in connection.topics:
            if result is True:
                connection.subscriptions[connection.topics[id]] = now
        elif method == ":cancel" and id in connection.cancels:
            cancel = connection.cancels[id]
            cancel.answer, cancel.is_early = result, not cancel.call.answers
        elif (call := connection.calls.get(id)) is not None and method == call.method:
            call.answers += 1
            call.answer, call.answered_at = answer_of(result), now
            self._in_flight.pop(id, None)
            if self.plan.acks and call.answer == VALUE and self.luck.random() < 0.95:
                self.write(_packed([":ack", id]))
            what = repr(result) if call.answer == VALUE else call.answer
            self.net.kernel.note(self.name, f"hears {what} of {call}")
        elif method == ":hello" and id == 0:
            assert isinstance(result, dict), "it is let in"
        elif method != ":message":
            connection.strange.append(f"{method} {id} {result}")

    def forget(self) -> None:
        for call in self._in_flight.values():
            call.answer, call.answered_at = LOST, self.connection.closed_at
        self._in_flight.clear()

    def look_back(self) -> None:
        Client.look_back(self)
        for connection in self.connections:
            for at, frame in pieces(connection.taken):
                method, id, result = _reply(frame) or ("", 0, None)
                if method in (":recv!", ":take!") and answer_of(result) == VALUE:
                    topic = connection.calls[id].topic
                    connection.given.append(Given(at, connection, method, id, topic, value_of(result)))
                elif method == ":message":
                    topic = connection.topics[id]
                    connection.given.append(Given(at, connection, method, id, topic, value_of(result)))


class PubSub(Client):
    """It publishes and subscribes at the pub/sub door."""

    def __init__(self, *given: Any) -> None:
        Client.__init__(self, *given)
        self._numbers = itertools.count(1)
        self._unacked: list[Published | str] = []  # or the topic of a subscription
        self._input = b""

    def greet(self) -> None:
        self._input, self._unacked = b"", []
        if self.plan.subscribes:
            for number, topic in enumerate(self.topics):
                self.connection.topics[number] = topic
                self._unacked.append(topic)
                self.write(bytes((SUBSCRIBE, len(topic))) + topic.encode())

    def under_way(self) -> int:
        return len(self._unacked)

    def speak(self, words: list[Word]) -> None:
        batch = []
        for _, topic, _, _ in words:
            value = f"{self.name}.{next(self._numbers)}"
            published = Published(self.connection, topic, value, self.task.clock())
            self._unacked.append(published)
            self.connection.published.append(published)
            self.net.kernel.note(self.name, f"publishes {published}")
            batch.append(bytes((PUBLISH, len(topic))) + topic.encode() + struct.pack("<H", len(value)) + value.encode())
        self.write(b"".join(batch))

    def received(self, data: bytes) -> None:
        self._input += data
        while (size := _size(self._input)) is not None:
            if self._input[0] == ACK:
                what, now = self._unacked.pop(0), self.task.clock()
                if isinstance(what, Published):
                    what.acked_at = now
                else:
                    self.connection.subscriptions[what] = now
                    if self.mate is not None and self.luck.random() < PROMPTS:
                        self.mate.prompt(Word(PUBLISHES, what))
            self._input = self._input[size:]

    def look_back(self) -> None:
        Client.look_back(self)
        for connection in self.connections:
            for at, message in messages(connection.taken):
                if message[0] != ACK:
                    given = Given(at, connection, "message", 0, topic_of(message), payload_of(message))
                    connection.given.append(given)


def _reply(frame: bytes) -> tuple[str, int, Any] | None:
    """Return the three elements of a reply; None if it is none."""
    try:
        method, id, result = msgpack.unpackb(frame, strict_map_key=False)
    except (ValueError, TypeError):
        return None
    return method, id, result


def _packed(frame: list[Any]) -> bytes:
    data: bytes = msgpack.packb(frame)
    return len(data).to_bytes(2, "big") + data


def messages(taken: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Yield the messages of pub/sub in pieces of a stream, and when each was whole."""
    data = b""
    for at, piece in taken:
        data += piece
        while (size := _size(data)) is not None:
            yield at, data[:size]
            data = data[size:]


def topic_of(message: bytes) -> str:
    """Return the topic of one that has one."""
    return message[2 : 2 + message[1]].decode()


def payload_of(message: bytes) -> str:
    """Return what is published by one."""
    return message[4 + message[1] :].decode()


def _size(data: bytes) -> int | None:
    """Return the bytes of the message that `data` begins with: None if it is not all there."""
    if data[:1] == bytes((ACK,)):
        return 1
    if len(data) < 2:
        return None
    size = 2 + data[1]
    if data[0] == PUBLISH:
        if len(data) < size + 2:
            return None
        size += 2 + int.from_bytes(data[size : size + 2], "little")
    return size if len(data) >= size else None
