"""Safeguards of nodes, and of the libraries for asyncio."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from skywalker.address import Address
from skywalker.clients.aio.line_driver import LineDriver
from skywalker.clients.call import Call
from skywalker.clients.calls import Calls
from skywalker.clients.line import Line as ClientLine
from skywalker.discovery.contact import Contact
from skywalker.discovery.roster import Roster
from skywalker.errors import TimedOut
from skywalker.members import Member
from skywalker.pubsub.exchange import Exchange
from skywalker.silk.membership import Membership
from tests.simulation import moves
from tests.simulation.failure import failure_of
from tests.simulation.plan import (
    CLIENT_ROOMS,
    CROWDED,
    CUTS_OF,
    MAX_LINKS,
    PUBLISH,
    PUBSUBS,
    ROOM,
    ROOMS,
    SPEAK_S,
    WORKERS,
    Fault,
    Plan,
    Spurt,
    Word,
    plan,
)
from tests.simulation.safeguard import InCore, Method, Safeguard, by_nothing
from workers.calls.interests import TopicInterest
from workers.calls.rebalance import Rebalance
from workers.mesh.link import Link
from workers.mesh.links import Links
from workers.mesh.readiness import ReadinessBarrier
from workers.mesh.succession import Succession
from workers.nodes.relayed import Relayed


def _as_it_is(made: Plan) -> Plan:
    return made


def _publishing(made: Plan) -> Plan:
    """Have nearly all clients publish."""
    callers = [client for client in made.clients if client.kind == "caller"][::2]
    publishers = [
        dataclasses.replace(client, kind="pubsub", number=PUBSUBS + n, subscribes=n % 3 == 0, acks=False, room=ROOM)
        for n, client in enumerate(callers)
    ]
    clients = (*publishers, *(client for client in made.clients if client.kind in ("pubsub", "broker")))
    topics = {word.topic for client in clients for spurt in client.spurts for word in spurt.words}
    last = max(int(topic.removeprefix("topic")) for topic in topics)
    return dataclasses.replace(made, topics=1 + last, clients=clients)


def _by_dns(made: Plan) -> Plan:
    """Have three nodes find each other by what lists them."""
    return dataclasses.replace(made, nodes=3, workers=2, way="dns")


def _by_silk(made: Plan) -> Plan:
    """Have three nodes find each other by Silk, of whom each may be told of one."""
    return dataclasses.replace(made, nodes=3, workers=2, way="silk")


def _busy(made: Plan) -> Plan:
    """Have them do so at one node, whose workers are more than there are processors."""
    return dataclasses.replace(
        _publishing(made),
        nodes=1,
        workers=max(WORKERS),
        conditions=dataclasses.replace(made.conditions, crowded=max(CROWDED), room=min(ROOMS), late_s=0.0),
    )


def _relayed(made: Plan) -> Plan:
    """Have nodes that reach some of each other's workers through siblings."""
    conditions = dataclasses.replace(made.conditions, max_links=min(MAX_LINKS), link_idle_s=0.2, older=0.0)
    return dataclasses.replace(made, nodes=3, workers=2, conditions=conditions)


def _steady(made: Plan) -> Plan:
    """Have some publish all the time, at three nodes, and hear what all of them do."""
    clients = tuple(
        dataclasses.replace(
            client,
            subscribes=True,
            pause_s=0.0,
            depth=64,
            room=ROOM,
            spurts=tuple(
                Spurt(0.015 * number, (Word(PUBLISH, f"topic{number % 4}"),)) for number in range(int(SPEAK_S / 0.015))
            ),
        )
        for client in made.clients
        if client.kind == "pubsub"
    )
    return dataclasses.replace(made, nodes=3, workers=min(WORKERS), topics=4, clients=clients)


def _moving(made: Plan) -> Plan:
    """Have connections move all the time."""
    return moves.plan_of(made.seed)


def _moving_slowly(made: Plan) -> Plan:
    """Have all of them take little at once, and move while some of their calls are just answered."""
    made = _moving(made)
    clients = tuple(dataclasses.replace(client, room=30) for client in made.clients)
    return dataclasses.replace(made, clients=clients, conditions=dataclasses.replace(made.conditions, drawn_after=8))


def _narrow(made: Plan) -> Plan:
    """Have callers listen as often as they can, and little fit into the kernel for them before they read it.

    Every third of them is slow whenever anybody is, and loses its connection before it reads again.
    """
    clients = [
        dataclasses.replace(client, room=min(CLIENT_ROOMS), depth=64, pause_s=0.0)
        if client.kind == "caller"
        else client
        for client in made.clients
    ]
    faults = [
        each
        for fault in made.faults
        if fault.kind in SLOW
        for caller in [client for client in clients if client.kind == "caller"][::3]
        for each in (
            dataclasses.replace(fault, whom=caller.name),
            Fault(fault.at + fault.seconds / 2, CUTS_OF[0], caller.name),
        )
    ]
    faults.sort(key=lambda fault: fault.at)
    return dataclasses.replace(made, clients=tuple(clients), faults=tuple(faults))


def _tried(shape: Callable[[Plan], Plan]) -> Callable[[int, Sequence[str]], Sequence[str]]:
    def tried(seed: int, kinds: Sequence[str]) -> Sequence[str]:
        _, failure = failure_of(shape(plan(seed, kinds)))
        return failure.lines if failure is not None else ()

    return tried


def _kept(
    where: type,
    method: str,
    replaced: Callable[[Any], Any],
    rules: tuple[str, ...],
    kinds: tuple[str, ...],
    shape: Callable[[Plan], Plan] = _as_it_is,
) -> Safeguard:
    return Safeguard(Method(where, method, replaced), rules, _tried(shape), kinds)


def _in_core(
    name: str, rules: tuple[str, ...], kinds: tuple[str, ...], shape: Callable[[Plan], Plan] = _as_it_is
) -> Safeguard:
    return Safeguard(InCore(name), rules, _tried(shape), kinds)


def _in_effect_at_once(change: Any) -> Any:
    def unsafe(self: TopicInterest, by: int, waiter: Any) -> None:
        change(self, by, None)
        if waiter is not None:
            waiter.in_effect()

    return unsafe


def _split_at_once(self: TopicInterest, subscriber: Any) -> None:
    self.leaves(subscriber)
    self.change(1, None)
    self._interests.splits.tell(*subscriber.split_as)
    self._interests.splits.cut(*subscriber.split_as)


def _open_at_once(self: ReadinessBarrier, places: object = ()) -> None:
    self._awaited = {}
    self._open()


def _out_at_once(found: Any) -> Any:
    def unsafe(self: Roster, addresses: Iterable[Address], now: float) -> None:
        found(self, addresses, now)
        for contact in [*self._contacts.values()]:
            if contact.dropped_at is not None:
                self._drop(contact, now)
        self._settle(now)

    return unsafe


def _dead_at_once(self: Roster, contact: Contact, now: float, *, at_once: bool) -> None:
    contact.alive_at = now
    self._leaves(contact, now)
    self._rest(contact, now)


def _knowing_nobody(begin: Any) -> Any:
    def unsafe(self: Roster, me: Member, *, last: object, **rest: Any) -> None:
        begin(self, me, **rest)

    return unsafe


def _told_nothing(self: Links, life: int) -> Iterable[int]:
    return ()


def _told_of_nobody(*_: object) -> set[str]:
    return set()


def _timed_out(_: Calls, call: Call) -> TimedOut:
    return call.timed_out()


def _saying_nothing_again(goes_by: Any) -> Any:
    def unsafe(self: Relayed, *given: Any) -> None:
        self._unread.clear()
        goes_by(self, *given)

    return unsafe


def _forgetful(connected: Any) -> Any:
    def unsafe(self: Exchange, *given: Any) -> None:
        topics, self._topics = self._topics, {}
        connected(self, *given)
        self._topics = topics

    return unsafe


TRUTH: Final = "answers_are_true"
ONCE: Final = "nothing_comes_twice"
ALL: Final = "subscribers_miss_nothing"
MEETING: Final = "who_waits_meets"
ORDER: Final = "order_holds"
TURN: Final = "senders_are_served_in_turn"
ONE: Final = "each_call_has_one_answer"
ENDS: Final = "calls_of_a_library_end_in_time"
STREAMS: Final = "streams_yield_what_came"

RINGS: Final = "nodes_agree"
ALONE: Final = "nodes_find_each_other"

DEATHS: Final = ("kill", "kill in a step", "kill at a point")
STOPS: Final = ("stop", "stop at a point", "suspend")
RELOADS: Final = ("reload", "stop at a point")
MOVES: Final = ("leave", "link half open")
SLOW: Final = ("slow client",)
LINKS: Final = ("link reset", "link half open", "part one way", "kill")


SAFEGUARDS: Final[dict[str, Safeguard]] = {
    "what was written to a lost connection is in doubt": _kept(
        ClientLine, "may_have", by_nothing, (TRUTH, "without_resend"), DEATHS
    ),
    "what a silent node has is in doubt": _kept(
        Calls, "_not_answered", lambda _: _timed_out, (TRUTH,), ("stop",)
    ),
    "a call ends though no node says so": _kept(Calls, "tick", by_nothing, (ONE, ENDS), ("stop",)),
    "a lost connection is made again": _kept(LineDriver, "_redial", by_nothing, (ONE, ENDS, STREAMS), SLOW),
    "a new connection listens as the last one did": _kept(
        Exchange, "connected_to_node", _forgetful, (STREAMS,), RELOADS
    ),
    "a program is told of a gap": _kept(Exchange, "_listening_again", by_nothing, (STREAMS,), RELOADS),
    "a value is written before its sender is told true": _in_core(
        "a value is written first", (TRUTH,), SLOW, _narrow
    ),
    "a value is asked back at the deadline": _in_core(
        "a value is asked back", (TRUTH,), STOPS
    ),
    "without a last word it is not known": _in_core("a last word is needed", (TRUTH,), STOPS),
    "opening barrier": _kept(ReadinessBarrier, "has_all", lambda _: _open_at_once, (ALL,), DEATHS),
    "a successor is asked after its predecessor has given all back": _kept(
        Succession, "ask", lambda _: Succession.end, (TURN,), ("reload",)
    ),
    "who comes back has its old place": _in_core(
        "who returns has its place", (TURN,), ("reload",)
    ),
    "a publisher waits while its topics move": _in_core(
        "publishers wait", (ORDER,), MOVES, _steady
    ),
    "what is published is held back while topics move": _kept(
        Rebalance, "hold_back", by_nothing, (ORDER,), ("reload", "link half open"), _steady
    ),
    "an ack is written after what it is for": _in_core(
        "an ack comes last", (ALL,), DEATHS, _busy
    ),
    "what waited at a dead worker is issued again": _in_core(
        "a lost call goes elsewhere", (ALL, TRUTH, MEETING, ONE), DEATHS
    ),
    "a subscription is acked once it is in effect": _kept(
        TopicInterest, "change", _in_effect_at_once, (ALL,), ("reload",), _busy
    ),
    "what a dead worker said is read to the end": _kept(
        Link, "read_to_the_end", by_nothing, (TRUTH, ALL), DEATHS
    ),
    "what a worker hands out is written where it outlives it": _in_core(
        "a hand is written down", (TRUTH, ONCE), DEATHS
    ),
    "what a dead worker was handing out is read": _kept(
        Links, "handed", lambda _: _told_nothing, (TRUTH, ONCE), DEATHS
    ),
    "who takes a value tells the home of its sender, too": _in_core(
        "a taker tells home", (TRUTH, ONCE), DEATHS
    ),
    "others tell what they know of a dead worker first": _in_core(
        "the dead are heard first", (TRUTH, ONCE), ("kill", "kill in a step")
    ),
    "a node counts though its source lists it no more": _kept(
        Roster, "found", _out_at_once, (RINGS,), ("wrong directory",), _by_dns
    ),
    "a node whose connection is lost is dialled before it is out": _kept(
        Roster, "_lost", lambda _: _dead_at_once, (RINGS,), DEATHS
    ),
    "a new agent counts those that the last one knew": _kept(
        Roster, "__init__", _knowing_nobody, (RINGS, MEETING), ("agent kill", "wrong directory")
    ),
    "who joins goes to the others of whom it is told": _kept(
        Membership, "_listed", lambda _: _told_of_nobody, (RINGS, ALONE), ("join",), _by_silk
    ),
    "what a relayed link has not got through goes another way": _kept(
        Relayed, "_goes_by", _saying_nothing_again, (TRUTH, ALL, ONCE), ("reload",), _relayed
    ),
    "who is doubtful stays so": _in_core("doubt stays", (TRUTH,), (*DEATHS, *LINKS)),
    "a call that was given a value stays when its connection moves": _in_core(
        "what is given stays", (TRUTH, ONE, MEETING), (), _moving
    ),
    "a subscription begins where it goes in the moment in which it ends where it was": _kept(
        TopicInterest, "comes", lambda _: _split_at_once, (ALL, ONCE, ORDER), (), _moving
    ),
    "a connection is passed on once all is written": _in_core("all is written first", (TRUTH, ONE), (), _moving_slowly),
}  # fmt: skip
"""By what each does."""
