"""asyncio on the simulated machine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.kernel import BEGIN, Kernel
from tests.simulation.machine import Net

HERE = ("10.0.0.1", 7)

Main = Callable[[EventLoop], Any]


class World:
    """Programs on one net."""

    def __init__(self, seed: int = 1) -> None:
        self.kernel = Kernel(seed)
        self.net = Net(self.kernel)
        self.net.names["home"] = ["10.0.0.9", HERE[0]]

    def start(self, name: str, main: Main) -> Program:
        return Program(self.net, name, HERE[0] if name == "server" else "10.0.0.2", main)

    def go_on(self, seconds: float = 10.0) -> None:
        self.kernel.go_on(seconds)


async def echo(_: EventLoop) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, port=HERE[1]) as server:
        await server.serve_forever()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: bytes) -> bytes:
    writer.write(words)
    return await reader.readexactly(len(words))


def test_streams_speak_over_simulated_sockets() -> None:
    world, heard = World(), []

    async def main(loop: EventLoop) -> None:
        for host in (HERE[0], "home"):
            reader, writer = await asyncio.open_connection(host, HERE[1])
            heard.append(await ask(reader, writer, b"x" * 500_000))
            writer.close()
            await writer.wait_closed()
        loop.machine.tcp().close()

    server = world.start("server", echo)
    client = world.start("client", main)
    world.go_on()
    assert [len(each) for each in heard] == [500_000] * 2
    assert client.has_ended
    assert not server.has_ended
    server.kill()


def test_a_long_time_goes_by_at_once_and_timers_keep_their_order() -> None:
    world, told = World(), []

    async def main(loop: EventLoop) -> None:
        loop.call_later(1800, told.append, "half")
        loop.call_soon_threadsafe(told.append, "at once")
        await asyncio.sleep(3600)
        told.append(round(loop.time() - BEGIN))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await loop.create_future()
        told.append(await asyncio.to_thread(lambda: "of a thread"))
        told.append(round(loop.time() - BEGIN))

    world.start("program", main)
    world.go_on(4000)
    assert told == ["at once", "half", 3600, "of a thread", 3605]


@pytest.mark.parametrize("where", [HERE, ("nowhere", 7)])
def test_where_nobody_listens_a_dial_fails(where: tuple[str, int]) -> None:
    world, told = World(), []

    async def main(_: EventLoop) -> None:
        try:
            await asyncio.open_connection(*where)
        except OSError as error:
            told.append(type(error).__name__)

    world.start("client", main)
    world.go_on()
    assert told == ["ConnectionRefusedError" if where == HERE else "gaierror"]


@pytest.mark.parametrize("writes", [None, 1, 3])
def test_who_is_killed_says_nothing_more_and_leaves_no_warning(writes: int | None) -> None:
    """Not even what stands in a finally: its peers see that the connection is gone."""
    world, heard = World(), bytearray()

    async def listen(_: EventLoop) -> None:
        async def hear(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            try:
                while data := await reader.read(1000):
                    heard.extend(data)
                heard.extend(b"|")
            except ConnectionResetError:
                heard.extend(b"|")

        async with await asyncio.start_server(hear, port=HERE[1]) as server:
            await server.serve_forever()

    async def main(_: EventLoop) -> None:
        _, writer = await asyncio.open_connection(*HERE)
        try:
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.4)
        finally:
            writer.write(b"goodbye")
            await writer.drain()
            await asyncio.sleep(1)
            writer.write(b"goodbye")

    server = world.start("server", listen)
    client = world.start("client", main)
    world.go_on(1)
    if writes is None:
        client.kill()
    else:
        client.task.kill_after(writes)
    world.go_on(5)
    assert client.has_ended
    assert bytes(heard) == b"a" * (3 + (writes or 0)) + b"|"
    server.kill()
    del client, server
    gc.collect()


def test_what_nobody_catches_is_told() -> None:
    world = World()

    async def main(loop: EventLoop) -> None:
        loop.call_soon([].pop)
        await asyncio.sleep(1)

    program = world.start("program", main)
    world.go_on()
    assert [line.partition(" ")[0] for line in program.loop.complaints] == ["program:"]
    assert "pop from empty list" in program.loop.complaints[0]


def test_the_same_seed_gives_the_same_run() -> None:
    def trace(seed: int) -> int:
        world = World(seed)

        async def main(_: EventLoop) -> None:
            reader, writer = await asyncio.open_connection(*HERE)
            async with asyncio.TaskGroup() as group:
                for n in range(5):
                    group.create_task(asyncio.sleep(0.001 * n))
            for n in range(20):
                await ask(reader, writer, b"words" * n * 100)
            writer.close()

        programs = [world.start("server", echo), *(world.start(f"client{n}", main) for n in range(3))]
        world.go_on()
        for each in programs:
            each.kill()
        return world.kernel.trace

    assert trace(1) == trace(1) != trace(2)
