"""One connection of the agent, in this process: what it reports, and when."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator

import pytest

from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.discovery.contact import Greeting
from skywalker.discovery.roster import Roster
from skywalker.members import Member
from skywalker.ring import random_tokens
from tests.helpers import time_factor
from tests.workers.dialled import Dialled
from tests.workers.told_node import HOST, ToldNode, framed
from workers.agent import acquaintance
from workers.agent.acquaintance import Acquaintance, Ours
from workers.engine.machine import MACHINE
from workers.stats.log import Log

ME = Member("id-me", "me", Address(HOST, 1), 1, False, tuple(random_tokens(4)))


class Reports(Roster):
    """Notes what it is told, and wants nothing."""

    def __init__(self) -> None:
        super().__init__(ME, learning=True, luck=lambda: 0.5, now=0.0)
        self.greetings = 0
        self.ends: list[str] = []
        self.listings: list[tuple[str, list[Member]]] = []

    def greeted(self, address: Address, greeting: Greeting, now: float) -> None:
        self.greetings += 1

    def ended(self, address: Address, reason: str, now: float, what: str = "") -> None:
        self.ends.append(reason)

    def listed(self, address: Address, version: str, members: Iterable[Member], now: float) -> None:
        self.listings.append((version, [*members]))


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def node() -> Iterator[ToldNode]:
    """One that has a ring of three, and tells one at a time."""
    with ToldNode() as told:
        others = [Member(f"id-{letter}", letter, Address(HOST, 1), 1, False, (1,)) for letter in "abc"]
        told.version, told.ring, told.page = "abc", others, 1
        yield told


def page(content: object) -> bytes:
    return framed([":nodes", 3, content])


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(10 * time_factor()):
        while not check():
            await asyncio.sleep(0.001)


@contextlib.contextmanager
def dialled(address: Address, reports: Reports) -> Iterator[Acquaintance]:
    found = Acquaintance(
        address, Ours(ME, joins=False, nonce=MACHINE.nonce), reports, lambda: None, Log(MACHINE.monotonic)
    )
    found.dial()
    try:
        yield found
    finally:
        found.hang_up()


async def listing(node: ToldNode, reports: Reports) -> tuple[str, list[str]]:
    with dialled(node.address, reports) as found:
        await until(lambda: reports.greetings)
        found.ask()
        await until(lambda: reports.listings)
    [(version, members)] = reports.listings
    return version, [member.name for member in members]


def test_a_ring_is_read_to_its_end(node: ToldNode, reports: Reports) -> None:
    assert asyncio.run(listing(node, reports)) == ("abc", ["a", "b", "c"])


@pytest.mark.parametrize(
    "further",
    [7, {"version": "abc", "nodes": 7, "more": False}, {"version": "abc", "nodes": [], "more": True}],
)
def test_a_listing_that_cannot_be_read_on_is_that_of_no_version(
    node: ToldNode, reports: Reports, further: object
) -> None:
    node.further = page(further)
    assert asyncio.run(listing(node, reports)) == ("", ["a"])


def test_a_listing_that_stops_is_that_of_no_version(
    node: ToldNode, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquaintance, "LISTED_WITHIN_S", 0.2 * time_factor())
    node.further = b""
    assert asyncio.run(listing(node, reports)) == ("", ["a"])


def test_a_ring_that_changes_while_it_is_read_is_that_of_no_version(node: ToldNode, reports: Reports) -> None:
    node.further = page({"version": "ab", "nodes": [node.ring[1].as_map()], "more": False})
    assert asyncio.run(listing(node, reports)) == ("", ["a", "b"])


def test_who_pings_one_that_does_not_read_is_told_so_later_and_not_meanwhile(
    node: ToldNode, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ping() -> None:
        with dialled(node.address, reports) as found:
            await until(lambda: reports.greetings)
            monkeypatch.setattr(acquaintance, "MAX_UNREAD", -1)
            found.ping()
            found.ping()
            assert reports.ends == []
            await until(lambda: reports.ends)
            await asyncio.sleep(0)
        assert reports.ends == ["it does not read what we say"]

    asyncio.run(ping())


class Nameless(asyncio.Transport):
    """A connection that was reset before asyncio could ask whose it is."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 7) if name == "sockname" else None

    def abort(self) -> None:
        """It is gone already."""


def test_one_that_is_gone_as_soon_as_it_is_there_is_no_bug(reports: Reports) -> None:
    async def meet() -> None:
        found = Acquaintance(
            Address(HOST, 1), Ours(ME, joins=False, nonce=MACHINE.nonce), reports, lambda: None, Log(MACHINE.monotonic)
        )
        found.connection_made(Nameless())

    asyncio.run(meet())
    assert reports.ends == ["connection reset by peer"]


@pytest.mark.parametrize("message", [[":ping", None], [":error", None], [":challenge"], [":ring", None, {}]], ids=str)
def test_whoever_says_something_else_than_the_answer_to_a_challenge_is_listened_to_no_more(
    reports: Reports, message: list[object]
) -> None:
    said = framed(message)

    def goes_on(sock: socket.socket) -> None:
        sock.recv(4096)
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(said * 1000)

    async def meet(address: Address) -> None:
        ours = Ours(ME, joins=True, nonce=MACHINE.nonce, trust=Trust(secret="the-secret"))
        found = Acquaintance(address, ours, reports, lambda: None, Log(MACHINE.monotonic))
        found.dial()
        try:
            await until(lambda: reports.ends)
        finally:
            found.hang_up()

    with Dialled(goes_on) as dialled:
        asyncio.run(meet(dialled.member.address))
    assert reports.ends == ["it sent what cannot be read: something else than the answer to a challenge"]
