"""What only tasks and event loops can do to the asyncio client of pub/sub."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

import pytest

import skywalker
from skywalker.embedding import Node
from skywalker.pubsub import aio
from skywalker.wire import pubsub as wire
from skywalker.wire.pubsub import ACKED
from tests.clients.proxy import Proxy
from tests.clients.scripted import ScriptedNode
from tests.clients.test_aio import run
from tests.helpers import time_factor
from tests.pubsub.scripted import acknowledge, read

SOON = 10.0

Nodes = Callable[[int], Node]


@pytest.mark.parametrize("buffer", [0, -1, 1.5, "1"])
def test_a_buffer_that_is_none_is_refused(node: Nodes, topic: str, buffer: int) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).pubsub_address) as broker:
            with pytest.raises(skywalker.LocalProtocolError, match="buffer"):
                await broker.subscribe(topic, buffer=buffer)

    run(main())


def test_what_tasks_publish_in_one_turn_leaves_in_one_write(scripted: ScriptedNode) -> None:
    async def main() -> None:
        async with await aio.connect(scripted.address) as broker:
            link = broker._driver._link
            assert link is not None
            write = link.transport.write
            writes = []
            link.transport.write = lambda data: writes.append(data) or write(data)  # type: ignore[method-assign, func-returns-value]
            connection = await asyncio.to_thread(scripted.next_connection)
            publishing = asyncio.gather(*(broker.publish("t", b"%d" % number) for number in range(100)))
            items = await asyncio.to_thread(acknowledge, connection, 100)
            await publishing
            assert [item[3] for item in items] == [b"%d" % number for number in range(100)]
            assert len(writes) <= 2

    run(main())


def test_a_cancelled_publish_leaves_those_of_others(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).pubsub_address) as broker, await broker.subscribe(topic) as messages:
            for round in range(20):
                tasks = [asyncio.create_task(broker.publish(topic, b"%d" % number)) for number in range(30)]
                await asyncio.sleep(0 if round % 2 else 0.0002 * round)
                for task in tasks[::3]:
                    task.cancel()
                await asyncio.wait(tasks)
                assert all(task.cancelled() or task.exception() is None for task in tasks)
                assert not any(task.cancelled() for number, task in enumerate(tasks) if number % 3)
            await broker.publish(topic, b"last")
            got = []
            while (payload := (await messages.get(SOON)).payload) != b"last":
                got.append(int(payload))
            # Those that were not cancelled came, in order, each round.
            assert [number for number in got if number % 3] == [n for n in range(30) if n % 3] * 20

    run(main())


def test_a_task_that_is_cancelled_while_it_waits_takes_no_message(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).pubsub_address) as broker, await broker.subscribe(topic) as messages:
            got: list[bytes] = []

            async def take() -> None:
                got.append((await messages.get(SOON)).payload)

            number = 0
            for _ in range(200):
                tasks = [asyncio.create_task(take()) for _ in range(3)]
                await asyncio.sleep(0)
                for _ in range(2):
                    await broker.publish(topic, b"%d" % number)
                    number += 1
                tasks[number % 3].cancel()
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            while len(got) < number:
                await take()
            assert sorted(map(int, got)) == list(range(number))

    run(main())


def test_a_task_that_is_cancelled_when_it_was_just_woken_wakes_the_next(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).pubsub_address) as broker, await broker.subscribe(topic) as messages:
            tasks = [asyncio.create_task(messages.get(SOON)) for _ in range(2)]
            await asyncio.sleep(0)
            driver = messages._driver
            assert driver._link is not None
            driver.received(driver._link, wire.publish(topic.encode(), b"1"))
            tasks[0].cancel()
            async with asyncio.timeout(2 * time_factor()):  # later some timer would wake it as well
                assert (await tasks[1]).payload == b"1"
            assert tasks[0].cancelled()

    run(main())


@pytest.mark.parametrize("waits", [True, False], ids=["who waits", "who does not"])
def test_a_gap_is_told_before_what_came_after_it_is_got(scripted: ScriptedNode, waits: bool) -> None:
    async def main() -> None:
        told: list[bytes] = []
        async with await aio.connect(scripted.address) as broker:
            await asyncio.to_thread(scripted.next_connection)
            subscribing = asyncio.create_task(broker.subscribe("t", on_gap=lambda _: told.append(b"gap")))
            connection = await asyncio.to_thread(scripted.next_connection)
            await asyncio.to_thread(acknowledge, connection)
            messages = await subscribing

            async def take() -> None:
                while len(told) < 14:
                    if waits or messages._exchange.waiting:
                        told.append((await messages.get(SOON)).payload)
                    else:
                        await asyncio.sleep(0)

            taking = asyncio.create_task(take())
            connection.close()
            connection = await asyncio.to_thread(scripted.next_connection)
            assert await asyncio.to_thread(read, connection) is not None
            sent = [b"%d" % number for number in range(13)]
            connection.write_bytes(ACKED + b"".join(wire.publish(b"t", payload) for payload in sent))
            await taking
            assert told == [b"gap", *sent]

    run(main())


def test_a_node_that_does_not_read_keeps_tasks_waiting(scripted: ScriptedNode) -> None:
    async def main() -> None:
        async with await aio.connect(scripted.address) as broker:
            connection = await asyncio.to_thread(scripted.next_connection)
            begun: list[aio.Pending] = []
            while not begun or not begun[-1].done():
                begun.append(await broker.begin("t", bytes(60_000), timeout=0.5))
            with pytest.raises(skywalker.TimedOut):
                await begun[-1]
            link = broker._driver._link
            assert link is not None
            assert link.transport.get_write_buffer_size() < 4 * 60_000
            last = asyncio.create_task(broker.publish("t", b"last", timeout=SOON))
            items = await asyncio.to_thread(acknowledge, connection, len(begun) + 1)
            assert items[-1][3] == b"last"
            await last

    run(main())


def test_connecting_can_be_cancelled_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        connecting = asyncio.create_task(aio.connect("127.0.0.1:1", connect_timeout=SOON))
        await asyncio.sleep(0.1)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_closing_while_a_subscription_without_topics_connects_leaves_no_connection(scripted: ScriptedNode) -> None:
    async def main() -> None:
        broker = await aio.connect(scripted.address)
        await asyncio.to_thread(scripted.next_connection)
        subscribing = asyncio.create_task(broker.subscribe())
        await asyncio.sleep(0)
        await broker.close()
        with pytest.raises(skywalker.Closed):
            await subscribing
        connection = await asyncio.to_thread(scripted.next_connection)
        with contextlib.suppress(ConnectionResetError):  # an abort may look like that
            assert await asyncio.to_thread(read, connection) is None

    run(main())


def test_closing_while_a_subscription_without_topics_waits_to_dial_again_ends_it_at_once(proxy: Proxy) -> None:
    async def main() -> None:
        broker = await aio.connect(proxy.address)
        proxy.refuse()
        subscribing = asyncio.create_task(broker.subscribe(timeout=6 * SOON))
        await asyncio.sleep(0.1)
        await broker.close()
        async with asyncio.timeout(SOON * time_factor()):
            with pytest.raises(skywalker.Closed):
                await subscribing

    run(main())


def test_in_the_child_of_a_fork_the_client_is_of_no_use_and_says_so(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).pubsub_address) as broker, await broker.subscribe(topic) as messages:
            pid = os.fork()
            if pid == 0:
                status = 2
                try:
                    for use in (broker.publish(topic, b"1"), messages.get()):
                        with pytest.raises(skywalker.Closed, match="connect anew"):
                            use.send(None)
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            await broker.publish(topic, b"1")
            assert (await messages.get(SOON)).payload == b"1"

    run(main())
