"""Programs that use our client library for asyncio, as it is: at the junction, and for pub/sub.

They say what a plan has them say, as the clients do that know the wire only. A program that is killed is started again,
and goes on with what it has not said. What its library made of it, the connections and how often what was written, is
read afterwards from what the kernel took.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgpack

from skywalker import aio
from skywalker.errors import SkywalkerError, TimedOut, Unreachable
from skywalker.pubsub import aio as pubsub
from tests.promises.history import (
    CANCELLED,
    LOST,
    NEVER_S,
    TIMED_OUT,
    TRUE,
    VALUE,
    Call,
    Cancel,
    Connection,
    Copy,
    Given,
    Published,
    Stream,
    Trouble,
    answer_of,
    full,
    pieces,
    value_of,
)
from tests.promises.record import answer_to
from tests.simulation import eventloop
from tests.simulation.clients import ACK, PUBLISH, SUBSCRIBE, messages, payload_of, topic_of
from tests.simulation.ends import Address, End
from tests.simulation.eventloop import EventLoop
from tests.simulation.kernel import Task
from tests.simulation.machine import Net, Simulated
from tests.simulation.plan import ClientPlan, Word

CONNECT_S: Final = 2.0
"""Seconds that a program tries to connect, before it begins anew."""

REST_S: Final = 0.05
"""Seconds until a program that was killed is started again, at most."""

LATE_S: Final = 0.1
"""Seconds more than it was given that connect() may take."""

SOON_S: Final = 0.001
"""Seconds in which a call is cancelled that is to be just when somebody comes, at most."""

LAST_WORDS_S: Final = 6.0
"""Seconds after the last word in which a subscription goes on: a node that has left may have to come back first."""

KINDS: Final = {":send!": "send", ":recv!": "recv", ":take!": "take"}

logging.getLogger("skywalker").addHandler(logging.NullHandler())
"""What the library logs of lost connections is of no interest here."""


class Watched(Simulated):
    """A machine that keeps what is said on the connections which are dialled from it."""

    def __init__(self, room: int, net: Net, task: Task) -> None:
        Simulated.__init__(self, net, task)
        self.ends: list[End] = []
        self._room = room

    def tcp(self, *family: Any) -> Any:
        made = Simulated.tcp(self, *family)
        made.end.taken, made.end.said, made.end.room = [], [], self._room
        self.ends.append(made.end)
        return made


class Program:
    """What both kinds have in common: processes, one after the other, that speak in spurts."""

    def __init__(self, net: Net, plan: ClientPlan, host: str, doors: list[Address], topics: list[str]) -> None:
        self.net = net
        self.plan = plan
        self.name = plan.name
        self.topics = topics
        self.connections: list[Connection] = []
        self.streams: list[Stream] = []
        self.stops: list[Trouble] = []
        self.is_done = False
        self._doors = doors
        self._host = host
        self._spurts = deque((net.kernel.now + at, words) for at, words in plan.spurts)
        self._numbers = itertools.count(1)
        self._under_way: dict[int, Call | Published] = {}
        self._ends: list[tuple[Connection, list[End]]] = []
        self._came: dict[End, int] = {}  # how much was taken for one when it went mute
        self._lives = 0
        self._start()

    # What a kind of program does.

    async def live(self, record: Connection, loop: EventLoop) -> None:
        """Do it."""
        raise NotImplementedError

    def forget(self) -> None:
        """It was killed."""

    def look_back(self) -> None:
        """Find out what the kernel took for it and of it."""
        raise NotImplementedError

    # Its life.

    def under_way(self) -> int:
        """Return how much of what it said waits for its answer."""
        return len(self._under_way)

    def stop(self, seconds: float) -> None:
        """Stand still for so long, and read nothing."""
        now = self.net.kernel.now
        self.stops.append(Trouble("slow client", self.name, now, now + seconds))
        self._process.task.stop(seconds)

    def cut(self, what: str, how: Callable[[End], None] | None = None) -> None:
        """Be killed, or have `how` done to a connection or all."""
        luck = self.net.kernel.luck
        ends = [end for end in self._machine.ends if not end.is_closed and end.peer is not None]
        if how is None:
            self._kill()
        elif ends:
            self.net.kernel.note(self.name, what)
            for end in luck.sample(ends, luck.choice([1, len(ends)])):
                how(end)
                if end.is_lost:
                    self._came.setdefault(end, len(end.taken or []))

    def _kill(self) -> None:
        if self._process.has_ended:
            return
        self._process.kill()
        kernel = self.net.kernel
        for what in self._under_way.values():
            if isinstance(what, Call):
                what.answer, what.answered_at = LOST, kernel.now
        self._under_way.clear()
        self.connections[-1].closed_at, self.connections[-1].is_cut = kernel.now, True
        self.forget()
        kernel.at(kernel.now + 0.001 + REST_S * kernel.luck.random(), self._start)

    def _start(self) -> None:
        self._lives += 1
        self._process = eventloop.Program(
            self.net, f"{self.name}.{self._lives}", self._host, self._main,
            functools.partial(Watched, self.plan.room)
        )  # fmt: skip
        machine = self._process.loop.machine
        assert isinstance(machine, Watched)
        self._machine = machine
        self.luck = self._process.task.luck
        record = Connection(self.name, self.net.kernel.now, self.stops, library=True)
        self.connections.append(record)
        self._ends.append((record, machine.ends))

    def close(self) -> None:
        """End what still runs: the run is over."""
        self._process.kill()

    async def _main(self, loop: EventLoop) -> None:
        record = self.connections[-1]
        await self.live(record, loop)
        record.strange += loop.complaints

    async def connected(self, record: Connection, loop: EventLoop, dial: Any, *given: Any, **options: Any) -> Any:
        """Return what a connect() returns, however often that takes."""
        doors = self.luck.sample(self._doors, self.luck.randint(1, len(self._doors)))
        where = ",".join(f"{host}:{port}" for host, port in doors)
        while True:
            began = loop.time()
            try:
                return await dial(where, *given, connect_timeout=CONNECT_S, **options)
            except Unreachable:
                late = loop.time() - began - CONNECT_S
                if late > LATE_S and not any(each.touches(began, loop.time()) for each in self.stops):
                    record.strange.append(f"{late:.3f} s late that there is no connection")
                await asyncio.sleep(0.05 * self.luck.random())

    async def speak(self, loop: EventLoop, say: Any) -> None:
        """Say all there is to say; return once all of it was answered."""
        free = asyncio.Semaphore(self.plan.depth)

        async def said(word: Word) -> None:
            try:
                await say(word)
            finally:
                free.release()

        async with asyncio.TaskGroup() as group:
            while self._spurts and not self.is_done:
                at, words = self._spurts[0]
                await asyncio.sleep(max(0.0, at - loop.time()))
                if self.is_done:
                    break
                self._spurts.popleft()
                for word in words:
                    await free.acquire()
                    if self.is_done:
                        break
                    group.create_task(said(word))
                    if self.luck.random() < 0.5:
                        await asyncio.sleep(2 * self.plan.pause_s * self.luck.random())


class Junction(Program):
    """It makes calls."""

    async def live(self, record: Connection, loop: EventLoop) -> None:
        record.acks, record.resends = self.plan.acks, self.luck.random() < 0.7
        client = await self.connected(
            record, loop, aio.connect,
            name=self.name, ack=record.acks, resend=record.resends, direct=self.luck.random() < 0.6
        )  # fmt: skip
        async with client:
            await self.speak(loop, functools.partial(self._say, client, record, loop))

    async def _say(self, client: aio.Client, record: Connection, loop: EventLoop, word: Word) -> None:
        number = next(self._numbers)
        value = f"{self.name}.{number}" if word.method == ":send!" else ""
        call = Call(record, -number, word.method, word.topic, value, loop.time(), word.timeout_ms / 1000)
        self._under_way[number] = call
        given: dict[str, Any] = {"value": value} if value else {"group": "group"} if word.method == ":take!" else {}
        self.net.kernel.note(self.name, f"begins {call}, for {word.timeout_ms} ms")
        pending = await client.begin(KINDS[word.method], word.topic, timeout=call.timeout_s, **given)
        call.id = pending.id
        record.calls[call.id] = call
        canceller = asyncio.create_task(self._cancel(client, record, call, pending)) if word.cancels else None
        try:
            got = await pending.result()
        except SkywalkerError as error:
            call.answer = answer_to(error)
        else:
            call.answer = TRUE if value else VALUE
            call.got = value_of(got)
        call.answers += 1
        call.answered_at = loop.time()
        del self._under_way[number]
        self.net.kernel.note(self.name, f"has {call.answer} for {call}")
        if canceller is not None:
            await canceller

    async def _cancel(self, client: aio.Client, record: Connection, call: Call, pending: aio.Pending) -> None:
        cancel = record.cancels[-call.id] = Cancel(call)
        # Many meet at once: then the value is on its way.
        await asyncio.sleep(self.luck.choice([call.timeout_s, SOON_S]) * self.luck.random())
        try:
            cancel.answer = await client.cancel(pending, 5.0)
        except TimedOut:
            cancel.answer = TIMED_OUT

    def look_back(self) -> None:
        for record, ends in self._ends:
            topics: dict[int, str] = {}
            values: dict[int, str] = {}
            copies: dict[int, list[Copy]] = {}
            for end in ends:
                here: dict[int, Copy] = {}
                when_full = [*full(end.taken or [], end.lost_at if end.mute_at == NEVER_S else NEVER_S)]
                for at, frame in pieces(end.said or []):
                    method, id, *more = msgpack.unpackb(frame, strict_map_key=False)
                    if method in KINDS:
                        topics[id], values[id] = more[1], str(more[-1])
                        here[id] = Copy(at, end.lost_at, end.mute_at, end.connected_at, when_full)
                        copies.setdefault(id, []).append(here[id])
                    elif method == ":ack":
                        here[id].is_acked = True
                    elif method == ":cancel" and more[0] in here:  # and no will
                        here[more[0]].is_cancelled = True
                for at, frame in pieces(end.taken or []):
                    method, id, result = msgpack.unpackb(frame, strict_map_key=False)
                    if method in KINDS and id in here:
                        copy = here[id]
                        copy.answer, copy.answered_at = answer_of(result), at
                        if copy.answer == VALUE:
                            copy.value = value_of(result)
                            record.given.append(Given(at, record, method, id, topics[id], copy.value))
            record.losses = [end.lost_at for end in ends]
            for id, each in copies.items():
                each.sort(key=lambda copy: copy.at)
                if id in record.calls:
                    record.calls[id].copies = each
                if record.resends and any(copy.answer not in ("draining", CANCELLED) for copy in each[:-1]):
                    record.resent.add(values[id])
            record.given.sort(key=lambda given: given.at)


class Broker(Program):
    """It publishes, and some subscribe."""

    def __init__(self, *given: Any) -> None:
        self._stream_of: dict[int, Stream] = {}  # of each of its processes that has begun to subscribe
        Program.__init__(self, *given)

    async def live(self, record: Connection, loop: EventLoop) -> None:
        broker = await self.connected(record, loop, pubsub.connect)
        async with broker:
            reader = None
            if self.plan.subscribes:
                stream = Stream(self.name, [], self.stops)
                self.streams.append(stream)
                self._stream_of[id(record)] = stream
                reader = asyncio.create_task(self._read(broker, stream, loop))
            await self.speak(loop, functools.partial(self._say, broker, record, loop))
            while reader is not None and not self.is_done:
                await asyncio.sleep(0.5)
            if reader is not None:
                await asyncio.sleep(LAST_WORDS_S)
                reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reader

    async def _read(self, broker: pubsub.Broker, stream: Stream, loop: EventLoop) -> None:
        def gap(_: str) -> None:
            stream.gaps += 1

        while True:
            try:
                subscription = await broker.subscribe(*self.topics, on_gap=gap, buffer=self.luck.choice([1, 10, 1000]))
                break
            except (TimedOut, Unreachable):
                await asyncio.sleep(0.05)
        stream.reads_slowly = self.luck.random() < 0.3
        async for message in subscription:
            stream.got.append(message.payload.decode())
            if stream.reads_slowly and not self.is_done:  # then it is to come to the end
                await asyncio.sleep(0.01 * self.luck.random())

    async def _say(self, broker: pubsub.Broker, record: Connection, loop: EventLoop, word: Word) -> None:
        number = next(self._numbers)
        published = self._under_way[number] = Published(record, word.topic, f"{self.name}.{number}", loop.time())
        record.published.append(published)
        try:
            await broker.publish(word.topic, published.value)
            published.acked_at = loop.time()
        except (TimedOut, Unreachable):
            published.failed_at = loop.time()
        del self._under_way[number]

    def forget(self) -> None:
        if self.streams and self.streams[-1].ended_at == NEVER_S:
            self.streams[-1].ended_at = self.net.kernel.now

    def look_back(self) -> None:
        for record, ends in self._ends:
            was_said: set[str] = set()
            for end in ends:
                if not end.said:
                    continue
                if end.said[0][1][0] == SUBSCRIBE:
                    self._heard(end, self._stream_of[id(record)])
                for _, message in messages(end.said):
                    if message[0] == PUBLISH:
                        value = payload_of(message)
                        if value in was_said:
                            record.resent.add(value)
                        was_said.add(value)
        self.connections += [each for stream in self.streams for each in stream.connections]

    def _heard(self, end: End, stream: Stream) -> None:
        """Note what there was on one connection of a subscription: what the kernel took, and what of that came."""
        closed_at = min(end.lost_at, end.mute_at)
        found = Connection(self.name, end.connected_at, self.stops, closed_at=closed_at, is_cut=True)
        found.reads_slowly = stream.reads_slowly
        asked = [topic_of(message) for _, message in messages(end.said or []) if message[0] == SUBSCRIBE]
        taken = end.taken or []
        found.full = [*full(taken, end.lost_at if end.mute_at == NEVER_S else NEVER_S)]
        for at, message in messages(taken):
            if message[0] != ACK:
                found.given.append(Given(at, found, "message", 0, topic_of(message), payload_of(message)))
        came = [*messages(taken[: self._came.get(end)])]
        found.subscriptions = dict(zip(asked, (at for at, message in came if message[0] == ACK), strict=False))
        found.came = sum(message[0] != ACK for _, message in came)
        stream.connections.append(found)
