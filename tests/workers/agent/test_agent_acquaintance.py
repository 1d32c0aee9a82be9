"""One connection of the agent, in this process: what it reports, and when, whatever the other end says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.members import Member
from tests.clients.scripted import error
from tests.workers.agent.reports import Reports, report, until
from tests.workers.dialled import Dialled
from tests.workers.processes import open_files
from tests.workers.told_node import HOST, ToldNode, framed
from workers.agent.acquaintance import MAX_REASON
from workers.engine.machine import MACHINE


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


# Its ring.


def page(content: object) -> bytes:
    return framed([":nodes", 3, content])


async def listing(node: ToldNode, reports: Reports) -> tuple[str, list[str]]:
    with reports.of(node.address) as found:
        await until(lambda: reports.greetings)
        found.ask()
        await until(lambda: reports.listings)
    [told] = reports.listings
    return told


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


# What it should not say.


def deep(levels: int) -> bytes:
    body = b"\x93\xa5:ring\xc0" + b"\x91" * levels + b"\xc0"
    return len(body).to_bytes(2, "big") + body


GARBAGE = {
    "text": b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 70_000,
    "no array": framed("hello"),
    "no map": framed([":ring", None, "news"]),
    "no version": framed([":ring", None, {"version": 7, "leaving": False}]),
    "no text": b"\x00\x0a\x93\xa5:ring\xc0\xa1\xff",
    "unhashable key": b"\x00\x0b\x93\xa5:ring\xc0\x81\x91\xc0\xc0",
    "too deep": deep(600),
    "deep": deep(500),
    "a second greeting": framed([":hello", 1, {}]),
    "an error": framed([":error", None, error("busy", "this worker has 1 connections" * 50)]),
    "no error": framed([":error", None, [[]]]),
    "a bad timestamp": b"\x00\x17\x93\xa5:ring\xc0\xc7\x0c\xff" + b"\xff" * 12,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_bad_bytes_end_it_with_a_short_reason(node: ToldNode, reports: Reports, garbage: bytes) -> None:
    async def meet() -> None:
        with reports.of(node.address):
            await until(lambda: reports.greetings)
            node.say(garbage)
            await until(lambda: reports.ends)
            await asyncio.sleep(0.01)

    asyncio.run(meet())
    [(_, reason)] = reports.ends
    assert reason.startswith(("it sent what cannot be read: ", "the node said "))
    assert len(reason) <= MAX_REASON


def test_unknown_words_and_answers_to_what_was_not_asked_are_passed_over(node: ToldNode, reports: Reports) -> None:
    words = ([":new", 1, 2, 3, 4, 5, 6, 7], [":nodes", 3, {}], [":join", 4, True], [":ping", 2, True], ["?"])
    node.garbage = b"".join(map(framed, words))

    async def meet() -> None:
        with reports.of(node.address) as found:
            await until(lambda: reports.answers == 1)
            node.say(framed([":ping", None]))
            found.ping()
            await until(lambda: reports.answers == 2)

    asyncio.run(meet())
    assert reports.ends == reports.listings == []


GREETINGS = {
    "unknown method": error("unknown-method"),
    "nothing of a node": {"welcome": "to the machine"},
    "tokens of no kind": {"node": "x", "name": "x", "workers": 1, "tokens": {"a": "b"}},
    "too many workers": {"node": "x", "name": "x", "workers": 10**9, "tokens": {0: [1]}},
    "no map at all": 7,
}


@pytest.mark.parametrize("greeting", GREETINGS.values(), ids=GREETINGS)
def test_what_is_no_node_is_called_that(node: ToldNode, greeting: object) -> None:
    node.greeting = greeting
    reports = report(node.address)
    assert len(reports.strangers) == 1
    assert not reports.ends


def test_a_node_that_does_not_know_its_address_is_where_we_reached_it(node: ToldNode) -> None:
    node.greeting = {key: value for key, value in node._own_greeting().items() if key not in ("address", "port")}
    [greeting] = report(Address("localhost", node.address.port)).greetings
    assert greeting.member == node.member


@pytest.mark.parametrize("message", [[":ping", None], [":error", None], [":challenge"], [":ring", None, {}]], ids=str)
def test_whoever_says_something_else_than_the_answer_to_a_challenge_is_listened_to_no_more(
    message: list[object],
) -> None:
    said = framed(message)

    def goes_on(sock: socket.socket) -> None:
        sock.recv(4096)
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(said * 1000)

    with Dialled(goes_on) as dialled:
        reports = report(dialled.member.address, trust=Trust(secret="the-secret"))
    assert [reason for _, reason in reports.ends] == [
        "it sent what cannot be read: something else than the answer to a challenge"
    ]


# What it does not read, and how it goes.


def test_one_that_says_much_and_reads_nothing_is_hung_up(reports: Reports) -> None:
    def asks_on(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(framed([":ping", None]) * 10_000)

    async def meet(address: Address) -> None:
        with reports.of(address) as found:
            await until(lambda: found._transport)
            assert found._transport is not None
            # Or the kernel would take some hundred thousand answers.
            found._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            await until(lambda: reports.ends)

    with Dialled(asks_on) as dialled:
        asyncio.run(meet(dialled.member.address))
    assert [reason for _, reason in reports.ends] == ["it does not read what we say"]


def test_dialling_again_and_again_leaks_no_descriptors(node: ToldNode, reports: Reports) -> None:
    async def dial(address: Address) -> None:
        before = len(reports.greetings), len(reports.ends)
        with reports.of(address):
            await until(lambda: (len(reports.greetings), len(reports.ends)) != before)

    async def meet() -> None:
        await dial(node.address)
        await until(lambda: not node.connections)
        before = open_files(MACHINE.pid())
        for address in [node.address, Address("localhost", node.address.port), Address(HOST, 1)] * 5:
            await dial(address)
        await until(lambda: not node.connections)
        assert open_files(MACHINE.pid()) == before

    asyncio.run(meet())
