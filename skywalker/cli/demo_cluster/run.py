"""The demo's main job: traffic, what befalls the nodes, and a look at all of it, at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import skywalker
from skywalker.cli.demo.run import Pool
from skywalker.cli.demo.taker import Receipts
from skywalker.cli.demo_cluster.fleet import Fleet
from skywalker.cli.demo_cluster.screen import Screen
from skywalker.cli.demo_cluster.story import FIRST, Sight, Story
from skywalker.cli.demo_cluster.traffic import TOPICS, Outcome, Traffic

TAKERS: Final = 2


def run(fleet: Fleet, file: Path, seconds: float, rate: float, screen: Screen) -> bool:
    """Send lines for `seconds`, or until all has happened that is to happen; return whether they all arrived."""
    traffic = Traffic()

    def tell(text: str) -> None:
        screen.event(traffic.progress.now() if traffic.progress.started else 0.0, text)

    def changed(differences: list[str]) -> None:
        for difference in differences:
            tell(f"ring: {difference}")

    async def main() -> tuple[Story, Receipts]:
        sight = Sight(changed)
        story = Story(fleet, sight, traffic, tell)
        over = asyncio.Event()
        async with (
            Pool.started(fleet.where, TOPICS, TAKERS, 1, ack=True) as pool,
            await skywalker.aio.connect(fleet.where) as junction,
            asyncio.TaskGroup() as tasks,
        ):
            watching = tasks.create_task(sight.watch(junction))
            await sight.until(FIRST)
            tell(f"{', '.join(FIRST)} are one ring")
            traffic.begin()
            drawing = tasks.create_task(_draw(screen, fleet, sight, traffic, seconds))
            sending = tasks.create_task(traffic.run(junction, file, rate, over))
            await story.run(seconds)
            over.set()
            await sending
            drawing.cancel()
            watching.cancel()
            screen.now(fleet, sight, traffic, seconds)
            return story, await pool.collect(junction)

    try:
        story, receipts = asyncio.run(main())
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        screen.done()
    outcome = Outcome.of(traffic.progress, receipts)
    screen.outcome(traffic, outcome, story.chapters)
    return outcome.good


async def _draw(screen: Screen, fleet: Fleet, sight: Sight, traffic: Traffic, seconds: float) -> None:
    while True:
        await asyncio.sleep(screen.pause)
        screen.now(fleet, sight, traffic, seconds)


def _first(error: BaseException) -> BaseException:
    """Return what went wrong, of tasks that were cancelled because of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
