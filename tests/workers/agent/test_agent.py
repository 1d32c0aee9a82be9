"""The agent as its supervisor sees it: snapshots out, whatever the nodes around it do."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from skywalker.address import Address
from skywalker.members import Member, Snapshot
from skywalker.ring import random_tokens
from tests.clients.scripted import error
from tests.helpers import eventually, time_factor
from tests.workers.agent_process import AgentProcess, agent
from tests.workers.processes import open_files
from tests.workers.told_node import HOST, ToldNode, framed
from workers.ipc import exits
from workers.ipc.control import Drain, Heard, Inspect, Left

ME = Member("id-me", "me", Address(HOST, 1), 1, False, tuple(random_tokens(4)))


@pytest.fixture
def nodes() -> Iterator[list[ToldNode]]:
    """Three nodes."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ToldNode(name)) for name in ("a", "b", "c")]


@contextlib.contextmanager
def settled(nodes: list[ToldNode], *, learning: bool = False) -> Iterator[AgentProcess]:
    """An agent that has found all of these, which it was told of."""
    with agent(ME, [node.address for node in nodes], learning=learning) as found:
        found.wait_for(ME, *(node.member for node in nodes))
        # Only a connection that has lasted is made anew at once when it is lost.
        eventually(lambda: all(node.pings >= 2 for node in nodes))
        yield found


def test_an_agent_hands_over_who_lives_and_how_others_see_them(nodes: list[ToldNode]) -> None:
    with settled(nodes) as found:
        expected = Snapshot([ME, *(node.member for node in nodes)])
        assert found.rings[-1].version == expected.version
        assert [node.accepted for node in nodes] == [1, 1, 1]
        assert nodes[0].options == [{"name": "me", "ring": True}]
        eventually(lambda: all(node.pings > 1 for node in nodes))
        assert [node.joined for node in nodes] == [[], [], []], "nobody here learns from others"
        found.channel.close()
        assert found.wait(2.0) == exits.OK
    assert [node.asked for node in nodes] == [0, 0, 0]


def test_a_killed_node_is_out_in_well_under_a_second(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    with settled(nodes) as found:
        a.die()
        assert found.wait_for(ME, b.member, c.member) < 0.8 * time_factor()
        # It comes back where it was.
        with ToldNode("a", port=a.address.port) as again:
            found.wait_for(ME, again.member, b.member, c.member)


def test_a_node_that_falls_silent_is_out_in_about_four_seconds(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    with settled(nodes) as found:
        a.hangs = True
        assert 3.0 < found.wait_for(ME, b.member, c.member, within=8.0) < 5.5 * time_factor()
        a.hangs = False
        found.wait_for(ME, a.member, b.member, c.member)


def test_a_lost_connection_to_a_node_that_lives_changes_nothing(nodes: list[ToldNode]) -> None:
    with settled(nodes) as found:
        before = len(found.listen().rings)
        nodes[0].cut()
        eventually(lambda: nodes[0].accepted == 2)
        pings = nodes[0].pings
        eventually(lambda: nodes[0].pings > pings)
        assert len(found.listen().rings) == before


def test_a_node_that_leaves_is_out_at_once(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    with settled(nodes) as found:
        a.push(leaving=True)
        assert found.wait_for(ME, b.member, c.member) < 0.5 * time_factor()
        assert a.connections == 1, "it is watched until it is gone"
        a.cut()
        found.wait_for(ME, a.member, b.member, c.member)


def test_one_address_leads_to_a_whole_cluster_and_each_node_is_told_where_we_are(nodes: list[ToldNode]) -> None:
    others = [node.member for node in nodes]
    for node in nodes:
        node.version, node.ring, node.page = "all", [ME, *others], 1
    with agent(ME, [nodes[0].address], learning=True) as found:
        found.wait_for(ME, *others)
        assert [node.joined for node in nodes] == [[str(ME.address)]] * 3
        assert nodes[0].asked == 4, "a page at a time"
        assert nodes[1].asked + nodes[2].asked == 0, "all say the same"
        with ToldNode("d") as late:
            nodes[2].ring = [ME, *others, late.member]
            nodes[2].push(version="one more")
            found.wait_for(ME, *others, late.member)
        with ToldNode("e") as hinted:
            found.hint(hinted.address)
            found.wait_for(ME, *others, hinted.member)


def test_a_ring_that_was_not_read_to_its_end_is_asked_for_again(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    a.version, a.ring, a.page, a.further = "all", [b.member, c.member], 1, framed([":nodes", 3, 7])
    with agent(ME, [a.address], learning=True) as found:
        found.wait_for(ME, a.member, b.member)
        assert a.asked == 2
        a.further = None
        found.wait_for(ME, a.member, b.member, c.member, within=10.0)
        assert a.asked == 4


@pytest.mark.parametrize("hint", ["\0:1", "nowhere.invalid:1", "x" * 300 + ":1", "no address: at all", "[::ffff]:9"])
def test_a_bad_hint_harms_nothing(nodes: list[ToldNode], hint: str) -> None:
    with agent(ME, [nodes[0].address], learning=True) as found:
        found.wait_for(ME, nodes[0].member)
        found.say(Heard(hint))
        found.hint(nodes[1].address)
        found.wait_for(ME, nodes[0].member, nodes[1].member)
        eventually(lambda: found.events("cluster-trouble") or found.events("bad-hint"), within=10.0)


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
def test_bad_bytes_cost_their_sender_its_connection_and_nobody_else_anything(
    nodes: list[ToldNode], garbage: bytes
) -> None:
    a, b, _ = nodes
    with agent(ME, [a.address, b.address]) as found:
        found.wait_for(ME, a.member, b.member)
        a.say(garbage)
        eventually(lambda: a.accepted > 1)
        assert b.accepted == 1
        assert len(found.events("cluster-trouble")) <= 1
        assert len(found.log()) < 3000
        # From one that begins each time it is cut off, we hear no more than its pace.
        a.garbage = garbage
        a.cut()
        accepted, start = a.accepted, time.monotonic()
        eventually(lambda: a.accepted >= accepted + 4)
        assert time.monotonic() - start > 0.4


def test_unknown_words_and_answers_to_what_was_not_asked_are_passed_over(nodes: list[ToldNode]) -> None:
    a, b, _ = nodes
    a.garbage = b"".join(
        map(framed, ([":new", 1, 2, 3, 4, 5, 6, 7], [":nodes", 3, {}], [":join", 4, True], [":ping", 2, True], ["?"]))
    )
    with agent(ME, [a.address, b.address]) as found:
        found.wait_for(ME, a.member, b.member)
        a.say(framed([":ping", None]))
        pings = a.pings
        eventually(lambda: a.pings > pings)
        assert a.accepted == 1


def test_one_that_says_much_and_reads_nothing_is_hung_up(nodes: list[ToldNode]) -> None:
    a, b, _ = nodes
    with agent(ME, [a.address, b.address]) as found:
        found.wait_for(ME, a.member, b.member)
        before = a.accepted
        a.hangs = True

        def cut_off() -> bool:
            a.say(framed([":ping", None]) * 100_000)
            return a.accepted > before

        eventually(cut_off, within=20.0)


GREETINGS = {
    "unknown method": error("unknown-method"),
    "nothing of a node": {"welcome": "to the machine"},
    "tokens of no kind": {"node": "x", "name": "x", "workers": 1, "tokens": {"a": "b"}},
    "too many workers": {"node": "x", "name": "x", "workers": 10**9, "tokens": {0: [1]}},
    "no map at all": 7,
}


@pytest.mark.parametrize("greeting", GREETINGS.values(), ids=GREETINGS)
def test_what_is_no_node_is_said_once_and_left_alone(nodes: list[ToldNode], greeting: object) -> None:
    a, b, _ = nodes
    a.greeting = greeting
    with agent(ME, [a.address, b.address]) as found:
        found.wait_for(ME, b.member)
        assert len(eventually(lambda: found.events("cluster-trouble"))) == 1
        assert str(a.address) in found.events("cluster-trouble")[0]
        pings = b.pings
        eventually(lambda: b.pings > pings + 3)
        assert a.accepted == 1
        assert a.connections == 0


def test_a_node_that_does_not_know_its_address_is_where_we_reached_it(nodes: list[ToldNode]) -> None:
    node = nodes[0]
    greeting = node._own_greeting()
    del greeting["address"], greeting["port"]
    node.greeting = greeting
    with agent(ME, [Address("localhost", node.address.port)]) as found:
        found.wait_for(ME, node.member)


def test_names_that_lead_nowhere_hold_up_nobody(nodes: list[ToldNode]) -> None:
    nowhere = [Address(f"nowhere-{number}.invalid", 3443) for number in range(20)]
    with agent(ME, [*nowhere, nodes[0].address]) as found:
        found.wait_for(ME, nodes[0].member)
        found.channel.close()
        assert found.wait(2.0) == exits.OK


def test_redialling_leaks_no_descriptors(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    c.die()
    with agent(ME, [a.address, b.address, c.address, Address("localhost", c.address.port)]) as found:
        found.wait_for(ME, a.member, b.member)
        before = open_files(found.process.pid)
        for _ in range(20):
            accepted = a.accepted
            a.cut()
            eventually(lambda n=accepted: a.accepted > n)
        eventually(lambda: open_files(found.process.pid) <= before)


# Its life.


def test_an_agent_that_drains_is_out_of_its_own_ring_and_says_so_when_it_is_announced_nowhere(
    nodes: list[ToldNode],
) -> None:
    with settled(nodes[:1]) as found:
        found.say(Drain())
        found.wait_for(nodes[0].member)
        eventually(lambda: found.listen().heard == [Left()])
        found.say(Drain())
        nodes[0].push(leaving=True)
        found.wait_for(ME)
        assert found.heard == [Left()]


def test_an_agent_is_registered_until_its_node_drains() -> None:
    with agent(ME, registration="prompt") as found:
        eventually(lambda: "registers" in found.log())
        found.say(Drain())
        eventually(lambda: found.listen().heard == [Left()])
        assert "deregisters" in found.log()
        assert found.events("registration-failed")


def test_an_agent_whose_health_nobody_could_ask_for_is_not_registered_until_they_can() -> None:
    with socket.create_server((HOST, 0)) as taken:
        at = Address(*taken.getsockname())
        with agent(ME, registration="prompt", health=at) as found:
            found.wait_for(ME)
            eventually(lambda: found.events("cannot-serve-health"))
            assert "registers" not in found.log()
            taken.close()
            eventually(lambda: f"registers {at}" in found.log(), within=10.0)


def test_a_health_address_that_the_machine_has_no_more_ends_no_agent() -> None:
    with agent(ME, registration="prompt", health=Address("203.0.113.9", 0)) as found:
        eventually(lambda: found.events("cannot-serve-health"))
        found.say(Drain())
        eventually(lambda: found.listen().heard == [Left()])
        assert "registers" not in found.log()


def test_one_whose_health_can_be_asked_for_only_once_it_drains_is_not_registered() -> None:
    with socket.create_server((HOST, 0)) as taken:
        at = Address(*taken.getsockname())
        with agent(ME, registration="prompt", health=at) as found:
            eventually(lambda: found.events("cannot-serve-health"))
            found.say(Drain())
            eventually(lambda: found.listen().heard == [Left()])
            taken.close()
            eventually(lambda: found.events("serving-health"), within=10.0)
            assert "registers" not in found.log()


def test_an_agent_that_had_no_descriptor_left_for_what_came_with_a_message_lives_and_says_so() -> None:
    with agent(ME) as found:
        found.say(Inspect(0, os.getpid()))
        eventually(lambda: "message=Inspect" in found.log())
        assert found.events("no-descriptor")
        found.say(Drain())
        eventually(lambda: found.listen().heard == [Left()])


def test_a_blocked_source_and_a_blocked_registration_hold_up_nothing(nodes: list[ToldNode]) -> None:
    with agent(ME, "blocked", learning=True, registration="blocked") as found:
        found.hint(nodes[0].address)
        found.wait_for(ME, nodes[0].member)
        found.say(Drain())
        found.wait_for(nodes[0].member)
        assert found.listen().heard == []
        found.channel.close()
        assert found.wait(2.0) == exits.OK


def test_an_agent_ends_with_its_supervisor_and_not_by_signals(nodes: list[ToldNode]) -> None:
    with settled(nodes) as found:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            os.kill(found.process.pid, number)
        nodes[0].die()
        found.wait_for(ME, nodes[1].member, nodes[2].member)
        found.channel.close()
        assert found.wait(2.0) == exits.OK
        eventually(lambda: not nodes[1].connections)


def test_a_supervisor_that_was_busy_gets_the_latest_ring(nodes: list[ToldNode]) -> None:
    with agent(ME, learning=True, small_channel=True) as found, contextlib.ExitStack() as stack:
        many = [stack.enter_context(ToldNode(f"one-of-many-{number}")) for number in range(20)]
        for number, node in enumerate(many):
            found.hint(node.address)
            eventually(lambda n=number: len(found.events("ring")) >= n + 1)
        found.wait_for(ME, *(node.member for node in many))
        assert len(found.rings) < 20, "the channel had room for all"


def test_an_agent_that_takes_the_place_of_one_begins_with_its_last_ring(nodes: list[ToldNode]) -> None:
    a, b, c = nodes
    c.die()
    with agent(ME, [a.address], learning=True, last=[ME, a.member, b.member, c.member]) as found:
        found.wait_for(ME, a.member, b.member)
        assert [len(ring) for ring in found.rings] == [4, 3]


def test_an_agent_without_a_source_is_alone() -> None:
    with agent(ME) as found:
        found.wait_for(ME)
        found.channel.close()
        assert found.wait(2.0) == exits.OK
