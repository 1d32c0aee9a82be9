"""The programs that `python -m bench.clients` compares: each makes the same rendezvous with another client library.

Each is one process with both sides in it: a client that receives and a client that sends, used as their
documentation says. `python -m bench.client_programs NAME` reads an Order from standard input and writes a Result.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final

VALUE: Final = b"0123456789abcdef"
LAST: Final = b"the last of them"
"""What a sender sends at its end, and ends its receiver."""

WARM_UP_S: Final = 0.3
CALL_TIMEOUT_S: Final = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """What a program is to do: keep `pairs` of a receiver and a sender busy for `seconds`, on a server."""

    host: str
    port: int
    pairs: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a program counted in its window: rendezvous, seconds on the clock, seconds of its own CPU time."""

    rendezvous: int
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Rendezvous per second."""
        return self.rendezvous / self.seconds

    @property
    def rate_per_core(self) -> float:
        """Rendezvous per second of CPU time of the client process."""
        return self.rendezvous / self.cpu_s


class Meter:
    """Counts both sides, and takes its readings at the ends of the window."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.over = False
        self._began = (0, 0.0, 0.0)

    def begin(self) -> None:
        """Take the first reading."""
        self._began = self._reading()

    def end(self) -> Result:
        """Take the second, and have the senders stop."""
        before, now = self._began, self._reading()
        self.over = True
        return Result(now[0] - before[0], now[1] - before[1], now[2] - before[2])

    def _reading(self) -> tuple[int, float, float]:
        return min(self.sent, self.received), time.perf_counter(), time.process_time()


Side = Callable[[str, Meter], Awaitable[None]]


async def _meet(order: Order, receive: Side, send: Side) -> Result:
    """Run a receiver and a sender for each pair, each a task. One of NATS ends at once: it has subscribed."""
    meter = Meter()
    topics = [f"bench.clients.{number}" for number in range(order.pairs)]
    tasks = [asyncio.ensure_future(side(topic, meter)) for side in (receive, send) for topic in topics]
    await asyncio.sleep(WARM_UP_S)
    meter.begin()
    await asyncio.sleep(order.seconds)
    result = meter.end()
    await asyncio.gather(*tasks)
    return result


async def skywalker_asyncio(order: Order) -> Result:
    """Tasks that share two clients, one that receives and one that sends."""
    from skywalker import aio

    address = f"{order.host}:{order.port}"
    async with await aio.connect(address) as receiver, await aio.connect(address) as sender:

        async def receive(topic: str, meter: Meter) -> None:
            while await receiver.recv(topic) != LAST:
                meter.received += 1

        async def send(topic: str, meter: Meter) -> None:
            while not meter.over:
                await sender.send(topic, VALUE)
                meter.sent += 1
            await sender.send(topic, LAST)

        return await _meet(order, receive, send)


async def nats_asyncio(order: Order) -> Result:
    """Request and reply: tasks that share a client that requests; another answers in the callback of a subscription."""
    import nats
    from nats.aio.msg import Msg

    url = f"nats://{order.host}:{order.port}"
    receiver, sender = await nats.connect(url), await nats.connect(url)

    async def receive(topic: str, meter: Meter) -> None:
        async def answer(message: Msg) -> None:
            meter.received += 1
            await message.respond(b"true")

        await receiver.subscribe(topic, cb=answer)
        await receiver.flush()

    async def send(topic: str, meter: Meter) -> None:
        await asyncio.sleep(WARM_UP_S / 2)  # a request that nobody has subscribed to fails at once
        while not meter.over:
            await sender.request(topic, VALUE, timeout=CALL_TIMEOUT_S)
            meter.sent += 1

    try:
        return await _meet(order, receive, send)
    finally:
        await sender.close()
        await receiver.close()


async def redis_asyncio(order: Order) -> Result:
    """BLPOP and RPUSH: tasks that share two clients, each of which has a pool of connections."""
    import redis.asyncio

    receiver, sender = (redis.asyncio.Redis(host=order.host, port=order.port) for _ in range(2))

    async def receive(topic: str, meter: Meter) -> None:
        while (popped := await receiver.blpop([topic], timeout=CALL_TIMEOUT_S)) and popped[1] != LAST:
            meter.received += 1

    async def send(topic: str, meter: Meter) -> None:
        while not meter.over:
            await sender.rpush(topic, VALUE)
            meter.sent += 1
        await sender.rpush(topic, LAST)

    try:
        return await _meet(order, receive, send)
    finally:
        await sender.aclose()
        await receiver.aclose()


def _meet_in_threads(order: Order, receive: Callable[[str], bytes], send: Callable[[str, bytes], object]) -> Result:
    """Run a receiver and a sender for each pair, each a thread."""
    meter = Meter()
    topics = [f"bench.clients.{number}" for number in range(order.pairs)]
    lock = threading.Lock()

    def sending(topic: str) -> None:
        while not meter.over:
            send(topic, VALUE)
            with lock:
                meter.sent += 1
        send(topic, LAST)

    def receiving(topic: str) -> None:
        while receive(topic) != LAST:
            with lock:
                meter.received += 1

    threads = [threading.Thread(target=side, args=[topic]) for side in (receiving, sending) for topic in topics]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP_S)
    meter.begin()
    time.sleep(order.seconds)
    result = meter.end()
    for thread in threads:
        thread.join()
    return result


def skywalker_blocking(order: Order) -> Result:
    """A thread that receives and one that sends, each with a client."""
    import skywalker

    address = f"{order.host}:{order.port}"
    with skywalker.connect(address) as receiver, skywalker.connect(address) as sender:
        return _meet_in_threads(order, receiver.recv, sender.send)


def redis_blocking(order: Order) -> Result:
    """BLPOP and RPUSH: a thread that receives and one that sends, each with a client."""
    import redis

    with (
        redis.Redis(host=order.host, port=order.port) as receiver,
        redis.Redis(host=order.host, port=order.port) as sender,
    ):

        def receive(topic: str) -> bytes:
            value: bytes = receiver.blpop([topic], timeout=CALL_TIMEOUT_S)[1]
            return value

        return _meet_in_threads(order, receive, sender.rpush)


PROGRAMS: Final[dict[str, Callable[[Order], Result]]] = {
    "skywalker asyncio": lambda order: asyncio.run(skywalker_asyncio(order)),
    "nats-py asyncio": lambda order: asyncio.run(nats_asyncio(order)),
    "redis-py asyncio": lambda order: asyncio.run(redis_asyncio(order)),
    "skywalker blocking": skywalker_blocking,
    "redis-py blocking": redis_blocking,
}


def main() -> int:
    """Run the program whose name is given; return the exit status."""
    (name,) = sys.argv[1:]
    result = PROGRAMS[name](Order(**json.loads(sys.stdin.readline())))
    print(json.dumps(dataclasses.asdict(result)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
