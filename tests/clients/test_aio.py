"""What only tasks and event loops can do to the asyncio client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import skywalker
from skywalker import aio
from skywalker.clients import stream
from skywalker.embedding import Node
from tests.clients.scripted import Connection, ScriptedNode, framed
from tests.helpers import time_factor

SOON = 10.0

Nodes = Callable[[int], Node]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a test, in debug mode, so that what is left behind is complained about."""

    async def within_time() -> Any:
        async with asyncio.timeout(30 * time_factor()):
            return await coroutine

    return asyncio.run(within_time(), debug=True)


async def waits(junction: aio.Junction, topic: Any, kind: str, count: int = 1) -> None:
    """Return once so many calls of a kind wait on a topic."""
    async with asyncio.timeout(SOON * time_factor()):
        while (await junction.topic(topic))[kind] != count:
            await asyncio.sleep(0.005)


def test_a_cancelled_task_cancels_its_call_at_the_node(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).address) as one, await aio.connect(node(2).address) as other:
            tasks = [asyncio.create_task(one.recv(topic)) for _ in range(5)]
            await waits(other, topic, "receivers", 5)
            for task in tasks[:3]:
                task.cancel()
            await waits(other, topic, "receivers", 2)
            assert await other.send(topic, "v")
            assert await asyncio.gather(*tasks[3:]) == ["v", "v"]
            assert [task.cancelled() for task in tasks] == [True] * 3 + [False] * 2

    run(main())


def test_a_call_can_be_awaited_by_several_tasks_and_cancelling_one_of_them_cancels_it(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).address) as one:
            call = await one.begin("recv", topic)

            async def wait() -> Any:
                return await call

            tasks = [asyncio.create_task(wait()) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [
                asyncio.CancelledError,
                skywalker.Cancelled,
                skywalker.Cancelled,
            ]

    run(main())


def test_a_node_that_does_not_read_makes_tasks_wait_but_not_beyond_their_time(scripted: ScriptedNode) -> None:
    async def main() -> None:
        async with await aio.connect(scripted.address) as junction:
            connection = scripted.next_connection()
            value = b"x" * 60_000
            outcomes = await asyncio.gather(
                *(junction.send("t", value, timeout=0.3) for _ in range(200)), return_exceptions=True
            )
            assert {type(outcome) for outcome in outcomes} == {skywalker.OutcomeUnknown}
            # Now that it reads: what was begun comes whole, and the client goes on.
            ping = asyncio.create_task(junction.ping())

            def read_all() -> None:
                while True:
                    message = connection.read()
                    if message[0] == ":ping":
                        connection.write([":ping", message[1], True])
                        return

            await asyncio.to_thread(read_all)
            assert await ping

    run(main())


def test_backpressure_bounds_what_one_task_can_pile_up(scripted: ScriptedNode) -> None:
    async def main() -> None:
        async with await aio.connect(scripted.address) as junction:
            begun = 0

            async def pile_up() -> None:
                nonlocal begun
                while True:
                    await junction.begin("send", "t", b"x" * 60_000, timeout=60)
                    begun += 1

            task = asyncio.create_task(pile_up())
            last = -1
            while begun != last:
                last = begun
                await asyncio.sleep(0.2)
            assert 0 < begun < 1000
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(main())


async def greeted(node: ScriptedNode, **options: Any) -> tuple[aio.Client, Connection]:
    """Return a client of a node that knows :hello, and its connection there."""
    connecting = asyncio.create_task(aio.connect(node.address, **options))
    connection = await asyncio.to_thread(node.next_connection)
    connection.write([":hello", (await asyncio.to_thread(connection.read))[1], {}])
    method, id = await asyncio.to_thread(connection.read)
    connection.write([method, id, [1, 2, 3]])
    return await connecting, connection


def test_a_node_that_falls_silent_is_pinged_in_time_whatever_the_time_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "PROBE_S", 0.1)

    async def main() -> None:
        with ScriptedNode(courtesies=False) as node:
            client, connection = await greeted(node)
            async with client:
                task = asyncio.create_task(client.recv("t", timeout=3600))
                # By now nothing else is due for long.
                assert (await asyncio.to_thread(connection.read))[0] == ":recv!"
                assert (await asyncio.to_thread(connection.read))[0] == ":ping"
                task.cancel()

    run(main())


def test_what_was_received_as_a_node_drained_is_acknowledged_before_it_is_left() -> None:
    async def main() -> None:
        with ScriptedNode(courtesies=False) as node:
            client, connection = await greeted(node, ack=True)
            async with client:
                task = asyncio.create_task(client.recv("t", timeout=SOON))
                method, id, *_ = await asyncio.to_thread(connection.read)
                connection.write([method, id, "v"], [":ring", None, {"version": "1", "leaving": True}])
                assert await task == "v"
                assert await asyncio.to_thread(connection.read) == [":ack", id]
                assert await asyncio.to_thread(connection.read) is None

    run(main())


@pytest.mark.parametrize("first", ["value", "cancelled"])
def test_a_value_that_comes_in_the_turn_in_which_its_task_is_cancelled_goes_back(first: str) -> None:
    async def main() -> None:
        with ScriptedNode(courtesies=False) as node:
            client, connection = await greeted(node, ack=True)
            async with client:
                tasks = [asyncio.create_task(client.recv("t", timeout=SOON)) for _ in range(3)]
                calls = [await asyncio.to_thread(connection.read) for _ in tasks]
                link = client._driver._link
                assert link is not None
                if first == "cancelled":
                    tasks[1].cancel()
                link.data_received(b"".join(framed([method, id, id]) for method, id, *_ in calls))
                tasks[1].cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                assert [outcomes[0], type(outcomes[1]), outcomes[2]] == [
                    calls[0][1],
                    asyncio.CancelledError,
                    calls[2][1],
                ]
                told = [await asyncio.to_thread(connection.read) for _ in tasks]
                assert {of: method for method, *_, of in told} == {
                    calls[0][1]: ":ack",
                    calls[1][1]: ":cancel",
                    calls[2][1]: ":ack",
                }

    run(main())


def test_and_so_does_one_that_comes_while_the_node_reads_nothing() -> None:
    async def main() -> None:
        with ScriptedNode(courtesies=False) as node:
            client, connection = await greeted(node, ack=True)
            async with client:
                link = client._driver._link
                assert link is not None
                link.pause_writing()
                task = asyncio.create_task(client.recv("t", timeout=SOON))
                method, id, *_ = await asyncio.to_thread(connection.read)
                link.data_received(framed([method, id, "v"]))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                link.resume_writing()
                method, *_, of = await asyncio.to_thread(connection.read)
                assert (method, of) == (":cancel", id)

    run(main())


def test_with_acknowledgements_tasks_that_come_and_go_lose_no_value(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).address, ack=True) as taker, await aio.connect(node(2).address) as sender:
            got: list[int] = []

            async def take() -> None:
                while True:
                    got.append(await taker.take(topic, timeout=SOON))

            tasks = [asyncio.create_task(take()) for _ in range(4)]
            sends = []
            for number in range(500):
                sends.append(asyncio.create_task(sender.send(topic, number, timeout=SOON)))
                if number % 5 == 0:
                    tasks.pop(number % 3).cancel()
                    tasks.append(asyncio.create_task(take()))
                    await asyncio.sleep(number % 4 * 1e-4)
            assert all(await asyncio.gather(*sends))
            async with asyncio.timeout(SOON * time_factor()):
                while sorted(got) != [*range(500)]:
                    await asyncio.sleep(0.005)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    run(main())


def test_a_value_that_nobody_waits_for_is_acknowledged_as_it_comes_and_others_before_the_end() -> None:
    async def main() -> None:
        with ScriptedNode(courtesies=False) as node:
            client, connection = await greeted(node, ack=True)
            async with client:
                begun = await client.begin("recv", "t", timeout=SOON)
                await client._driver.wait(begun, client._driver.now() + 0.01)
                method, id, *_ = await asyncio.to_thread(connection.read)
                connection.write([method, id, "v"])
                assert await asyncio.to_thread(connection.read) == [":ack", id]
                assert await begun == "v"
                task = asyncio.create_task(client.recv("t", timeout=SOON))
                method, id, *_ = await asyncio.to_thread(connection.read)
                link = client._driver._link
                assert link is not None
                link.data_received(framed([method, id, "w"]))
            assert await task == "w"
            assert await asyncio.to_thread(connection.read) == [":ack", id]

    run(main())


def test_a_client_closed_with_calls_under_way_leaves_nothing_in_the_loop(node: Nodes, topic: str) -> None:
    async def main() -> set[asyncio.Task[Any]]:
        one = await aio.connect(node(2).address)
        task = asyncio.create_task(one.recv(topic))
        await waits(one, topic, "receivers")
        await one.close()
        with pytest.raises(skywalker.Closed):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]  # there is one

    assert run(main()) == set()


def test_in_the_child_of_a_fork_the_client_is_of_no_use_and_says_so(node: Nodes, topic: str) -> None:
    async def main() -> None:
        async with await aio.connect(node(2).address) as one:
            pid = os.fork()
            if pid == 0:
                try:
                    one._driver.begin("ping", (), 1.0).send(None)
                except skywalker.Closed as error:
                    os._exit(0 if "connect anew" in str(error) else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert await one.ping()

    run(main())
