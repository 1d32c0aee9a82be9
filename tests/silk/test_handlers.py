"""Handlers that do what handlers should not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skywalker.errors import HandlerFailed, NoReply
from skywalker.silk.service import MAX_RUNNING
from tests.silk.driving import cluster, new_node, simulate, soon


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


async def raises(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such width: -1"), "n1: no such width: -1$"),
        (KeyError("width"), "n1: 'width'$"),
        (ValueError(), "n1: ValueError$"),
        (ValueError("x" * 10_000), f"n1: {'x' * 1000}$"),
        (ValueError("half a character: \ud800"), "half a character: \ud800$"),
        (TimeoutError("too slow"), "n1: too slow$"),
        (StopAsyncIteration(), "n1: StopAsyncIteration$"),
        (asyncio.CancelledError(), "n1: CancelledError$"),
        (Unsayable(), "n1: Unsayable$"),
    ],
)
@pytest.mark.parametrize("is_plain", [True, False])
def test_what_a_handler_raises_is_told_to_who_asked(error: BaseException, text: str, is_plain: bool) -> None:
    def plain(data: Any) -> Any:
        raise error

    async def main() -> None:
        async with cluster(2) as (asker, other):
            other.handle("fails", plain if is_plain else lambda data: raises(error))
            for _ in range(2):
                with pytest.raises(HandlerFailed, match=text):
                    await asker.request(other.id, "fails")

    simulate(main())


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (b"bytes", "cannot be said in JSON"),
        ({1, 2}, "cannot be said in JSON"),
        (float("nan"), "cannot be said in JSON"),
        ({("a", "b"): 1}, "cannot be said in JSON"),
        ("x" * 2**20, "longer than 1048576"),
    ],
)
def test_a_reply_that_cannot_be_sent_is_told_as_a_failure(result: Any, text: str) -> None:
    async def main() -> None:
        async with cluster(2) as (asker, other):
            ran: list[Any] = []

            def odd(data: Any) -> Any:
                ran.append(data)
                return result

            other.handle("odd", odd)
            with pytest.raises(HandlerFailed, match=f"the handler's reply cannot be sent: .*{text}"):
                await asker.request(other.id, "odd")
            assert len(ran) == 1

    simulate(main())


def test_a_failure_that_nobody_waits_for_is_told_to_the_loop() -> None:
    async def main() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with cluster(2) as (asker, other):
            other.handle("fails", lambda data: raises(OSError("no disk")))
            await asker.tell(other.id, "fails")
            await soon(lambda: told)
            assert str(told[0]["exception"]) == "no disk"
            assert "no reply" in told[0]["message"]

    simulate(main())


def test_a_handler_that_never_ends_is_cancelled_when_its_node_closes() -> None:
    async def main() -> None:
        ended: list[str] = []

        async def never(data: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)  # its own tidying may take a while
                ended.append(data)

        async with cluster(1) as [asker], new_node() as other:
            other.handle("never", never, attempts=1, period=30)
            await other.join(asker.info.router)
            asking = [asyncio.create_task(asker.request(other.id, "never", str(number))) for number in range(3)]
            await asker.tell(other.id, "never", "told")
            await asyncio.sleep(0.1)
            await other.close()
            assert sorted(ended) == ["0", "1", "2", "told"]
            results = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(result) for result in results] == [NoReply] * 3
            assert "has left" in str(results[0])

    simulate(main())


def test_a_handler_may_close_its_own_node() -> None:
    async def main() -> None:
        async with cluster(2) as (asker, other):
            closings: list[asyncio.Task[None]] = []
            other.handle("close", lambda data: closings.append(asyncio.create_task(other.close())), attempts=1)
            with_answer = asyncio.create_task(asker.request(other.id, "close"))
            await asyncio.wait([with_answer])
            await asyncio.gather(*closings)
            assert with_answer.exception() is None or isinstance(with_answer.exception(), NoReply)

    simulate(main())


def test_of_2000_that_come_at_once_those_beyond_the_limit_run_when_there_is_room() -> None:
    async def main() -> None:
        async with cluster(2) as (asker, other):
            ran: list[int] = []
            most = 0
            running = 0

            async def work(data: int) -> int:
                nonlocal most, running
                ran.append(data)
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.3)
                running -= 1
                return data

            other.handle("work", work, attempts=20, period=0.5)
            await soon(lambda: asker.members[other.id].messages)
            numbers = [*range(2000)]
            replies = await asyncio.gather(*(asker.request(other.id, "work", number) for number in numbers))
            assert replies == numbers
            assert sorted(ran) == numbers
            assert most == MAX_RUNNING
            assert other.dropped > 0  # those that had to come again

    simulate(main())
