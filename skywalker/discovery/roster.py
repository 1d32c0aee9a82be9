"""Who is in the cluster: which addresses to dial, ping and give up, and who lives by what comes of that.

Knows no socket and no clock. A shell reports what happens at each address, calls tick() when
wait() is over, and carries out the actions. An address has one connection at most: from Dial
until the shell reports its end, or is told to HangUp and then says nothing more of it. `now`
is in seconds on any one clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from skywalker.address import Address
from skywalker.deadlines import Deadlines
from skywalker.discovery import pace
from skywalker.discovery.contact import CONNECTED, Contact, Greeting, State
from skywalker.discovery.rumours import Rumours
from skywalker.members import Member, Snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class _Connection:
    """What is done about the connection to an address."""

    address: Address


class Dial(_Connection):
    """Connect and greet; report greeted(), foreign() or ended()."""


class Ping(_Connection):
    """Ask whether the node lives; report answered()."""


class Ask(_Connection):
    """Ask for the ring that the node uses; report listed(), whatever comes of it."""


class HangUp(_Connection):
    """Close the connection or end the attempt, if there is one, and report nothing more of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Publish:
    """The cluster has changed."""

    snapshot: Snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An operator should know this about an address; it is said once."""

    address: Address
    text: str


Action = Dial | Ping | Ask | HangUp | Publish | Notice


MAX_CONTACTS: Final = 4096
"""Addresses of a cluster; what others tell beyond that is not believed."""

MAX_DIALLING: Final = 256
"""Attempts that are under way at a time, each of which is a descriptor."""

NOBODY: Final = "no node answers there"

ELSEWHERE: Final = "a node is there that is reached elsewhere"

NO_TLS: Final = "no TLS with what is there"

NOT_LET_IN: Final = "what is there does not let this node in"

NOT_PROVEN: Final = "what is there does not prove to be a node of this cluster"

MAX_UNPROVEN: Final = 16
"""Addresses that are named where one of both ends has not proved that it is a node."""

MAX_REASON: Final = 300
"""Characters of why it has not."""

TWIN: Final = "each node needs a state directory of its own"


class Roster:
    """The cluster as the node `me` finds it.

    With `learning`, addresses also come from the rings of others and from hints. `last` are the members of the last
    snapshot of an earlier life: they count as alive until they turn out not to be. `luck` returns numbers from 0 to
    below 1.
    """

    def __init__(
        self, me: Member, *, learning: bool, luck: Callable[[], float], now: float, last: Iterable[Member] = ()
    ) -> None:
        self.snapshot: Snapshot | None = None
        self._me = me
        self._learning = learning
        self._luck = luck
        self._draining = False
        self._crowded = False  # and said so
        self._contacts: dict[Address, Contact] = {}
        self._homes: dict[str, Contact] = {}  # by id, where each node was greeted last
        self._deadlines = Deadlines()
        self._rumours = Rumours()
        self._dialling = 0  # contacts in that state
        self._unproven: dict[Address, str] = {}  # where somebody is who is no node of this cluster, and why not
        self._actions: list[Action] = []
        self._publish_at: float | None = now + pace.TOGETHER_S
        self._published_at = -pace.FORGET_S  # long ago
        for member in last:
            # Of two at one address no more than one can live.
            if member.id != me.id and (contact := self._meet(member.address, now)) and contact.greeting is None:
                contact.greeting = Greeting(member, stated=True, version="")
                self._homes[member.id] = contact

    def actions(self) -> list[Action]:
        """Return what is to be done now, in this order, and forget it."""
        actions, self._actions = self._actions, []
        return actions

    def wait(self, now: float) -> float | None:
        """Return the seconds until tick() has something to do, at least 0; None if only an event can change that."""
        waits = [self._deadlines.wait(now), None if self._publish_at is None else max(0.0, self._publish_at - now)]
        return min((wait for wait in waits if wait is not None), default=None)

    # What happens.

    def found(self, addresses: Iterable[Address], now: float) -> None:
        """The source lists these, and no others."""
        listed = set(addresses)
        for contact in [*self._contacts.values()]:
            if contact.address not in listed and (contact.listed or not self._learning):
                if contact.greeting is None or contact.leaving:
                    self._drop(contact, now)
                elif contact.dropped_at is None:
                    contact.dropped_at = now
        for address in sorted(listed):
            if met := self._meet(address, now):
                met.listed, met.dropped_at = True, None
        self._settle(now)

    def hinted(self, address: Address, now: float) -> None:
        """Somebody says that there is a node at this address."""
        contact = self._contacts.get(address)
        if not self._learning:
            return
        if contact is None:
            self._learn(address, now)
        elif contact.state is State.RESTING and contact.at is not None:
            # It may be back. Not at once, or hints could have us dial without end.
            self._enter(contact, State.RESTING, min(contact.at, now + pace.RETRY_S))
        self._settle(now)

    def greeted(self, address: Address, greeting: Greeting, now: float) -> None:
        """A dialled node has answered."""
        contact = self._contacts.get(address)
        if contact is not None and contact.state is State.DIALLING:
            contact.failures = 0
            contact.alive_at = now
            self._clear(contact, now)
            if greeting.member.id == self._me.id:
                self._is_ourselves(contact, greeting, now)
            else:
                self._is_member(contact, greeting, now)
        self._settle(now)

    def foreign(self, address: Address, reason: str, now: float) -> None:
        """What was dialled is no node of a cluster; the shell has closed the connection."""
        contact = self._contacts.get(address)
        if contact is not None and contact.state is State.DIALLING:
            self._leaves(contact, now)
            self._clear(contact, now)
            self._notice(contact, "no node of a cluster is there", reason)
            self._enter(contact, State.RESTING, now + pace.LOOK_AGAIN_S)
        self._settle(now)

    def ended(self, address: Address, reason: str, now: float, what: str = NOBODY) -> None:
        """An attempt failed, or a connection was lost; `what` is the kind of trouble, of which each is told once."""
        contact = self._contacts.get(address)
        if contact is not None and contact.state is State.DIALLING:
            self._failed(contact, what, reason, now)
        elif contact is not None and contact.connected:
            lasted = now - contact.greeted_at >= pace.LASTING_S
            if not lasted and not contact.leaving:
                self._notice(contact, "no connection lasts", reason)
            self._lost(contact, now, at_once=lasted)
        self._settle(now)

    def answered(self, address: Address, now: float) -> None:
        """A node has answered a ping."""
        contact = self._contacts.get(address)
        if contact is not None and contact.state is State.PINGED:
            contact.noticed = ""
            self._rumours.lives(address, now)
            self._ping_later(contact, now)
        self._settle(now)

    def pushed(self, address: Address, version: str, leaving: bool, now: float) -> None:
        """A node uses another ring, or goes away."""
        contact = self._contacts.get(address)
        if contact is not None and contact.connected:
            self._rumours.told(address, version)
            if leaving and contact.dropped_at is not None:
                self._drop(contact, now)
            elif leaving and not contact.leaving:
                contact.leaving = True
                self._publish_soon(now)
        self._settle(now)

    def listed(self, address: Address, version: str, members: Iterable[Member], now: float) -> None:
        """A node that was asked says who is in its ring; of no version are those that are not all of it."""
        self._rumours.answered(address, version, now)
        if self._learning:
            for member in members:
                if member.id != self._me.id and member.id not in self._homes:
                    self._learn(member.address, now)
        self._settle(now)

    def drain(self, now: float) -> None:
        """This node goes away: the cluster is without it from now on."""
        self._draining = True
        self._publish_at = now
        self._settle(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        for contact in self._deadlines.due(now):
            if contact.at is None or contact.at > now:
                continue  # what was due before it has changed its course
            if contact.state is State.DIALLING:
                self._hang_up(contact)
                self._failed(contact, NOBODY, f"no greeting within {pace.GREETED_WITHIN_S:g} s", now)
            elif contact.dropped_at is not None and now - contact.dropped_at >= pace.DROPPED_S:
                self._drop(contact, now)
            elif contact.state is State.UP:
                self._actions.append(Ping(contact.address))
                self._enter(contact, State.PINGED, now + pace.ANSWER_S)
            elif contact.state is State.PINGED:
                self._hang_up(contact)
                self._notice(contact, "the connection fell silent", f"no answer to a ping within {pace.ANSWER_S:g} s")
                self._lost(contact, now, at_once=True)
            elif not contact.listed and now - contact.alive_at >= pace.FORGET_S:
                self._drop(contact, now)
                self._rumours.again()
            else:
                self._dial(contact, now)
        self._settle(now)

    # Who is where.

    def _is_ourselves(self, contact: Contact, greeting: Greeting, now: float) -> None:
        self._hang_up(contact)
        self._leaves(contact, now)
        if greeting.stated and greeting.member.address != self._me.address:
            self._notice(contact, f"{greeting.member} has the id of this node, and is ignored", TWIN)
            self._enter(contact, State.RESTING, now + pace.LOOK_AGAIN_S)
        else:
            self._enter(contact, State.RESTING, None)

    def _is_member(self, contact: Contact, greeting: Greeting, now: float) -> None:
        member = greeting.member
        home = self._homes.get(member.id)
        if home is not None and home is not contact and home.greeting is not None and home.connected:
            self._hang_up(contact)
            self._leaves(contact, now)
            if greeting.stated and home.greeting.stated and member.address != home.greeting.member.address:
                self._notice(contact, f"{member} has the id of {home.greeting.member}, and is ignored", TWIN)
            contact.shadowed = member.id
            self._enter(contact, State.RESTING, now + pace.LOOK_AGAIN_S)
            return
        before = None if home is None or home.greeting is None else home.greeting.member
        if contact.greeting is not None and contact.greeting.member.id != member.id:
            self._leaves(contact, now)
        if home is not None and home is not contact:
            home.greeting = None  # it was being redialled there, and has moved here
        self._homes[member.id] = contact
        contact.greeting, contact.greeted_at = greeting, now
        if greeting.version:
            self._rumours.told(contact.address, greeting.version)
        self._ping_later(contact, now)
        if member != before:
            self._publish_soon(now + pace.TOGETHER_S)

    def _learn(self, address: Address, now: float) -> None:
        known = (home.greeting for home in self._homes.values() if home.connected and home.greeting is not None)
        if address != self._me.address and all(address != each.member.address for each in known):
            self._meet(address, now)

    def _meet(self, address: Address, now: float) -> Contact | None:
        """Return the contact for an address, a new one if there is room."""
        contact = self._contacts.get(address)
        if contact is None:
            if len(self._contacts) >= MAX_CONTACTS:
                if not self._crowded:
                    self._crowded = True
                    self._actions.append(Notice(address, f"ignored, as all beyond {MAX_CONTACTS} addresses"))
                return None
            contact = self._contacts[address] = Contact(address, listed=False, alive_at=now)
            self._dial(contact, now)
        return contact

    def _drop(self, contact: Contact, now: float) -> None:
        self._hang_up(contact)
        self._clear(contact, now)
        self._leaves(contact, now)
        self._enter(contact, State.RESTING, None)
        del self._contacts[contact.address]

    # What becomes of a contact.

    def _dial(self, contact: Contact, now: float) -> None:
        contact.shadowed = ""
        if self._dialling >= MAX_DIALLING:
            self._enter(contact, State.RESTING, now + pace.redial_s(self._luck(), 0))
            return
        self._actions.append(Dial(contact.address))
        self._enter(contact, State.DIALLING, now + pace.GREETED_WITHIN_S)

    def _ping_later(self, contact: Contact, now: float) -> None:
        self._enter(contact, State.UP, now + pace.ping_s(len(self._homes)))

    def _failed(self, contact: Contact, what: str, reason: str, now: float) -> None:
        contact.failures += 1
        if contact.failures < pace.FAILURES:
            self._enter(contact, State.RESTING, now + pace.RETRY_S)
            return
        if contact.dropped_at is not None:
            self._drop(contact, now)
            return
        self._leaves(contact, now)
        self._notice(contact, what, reason)
        # A list may lead to a node by another address, as that of a load balancer; any other source should not.
        if what in (NO_TLS, NOT_LET_IN, NOT_PROVEN) or (what == ELSEWHERE and not self._learning):
            self._is_unproven(contact, f"{what}: {reason}"[:MAX_REASON], now)
        else:
            self._clear(contact, now)
        if what in (ELSEWHERE, NOT_LET_IN, NOT_PROVEN):
            self._enter(contact, State.RESTING, now + pace.STRANGER_S)
        else:
            self._rest(contact, now)

    def _rest(self, contact: Contact, now: float) -> None:
        self._enter(contact, State.RESTING, now + pace.redial_s(self._luck(), len(self._contacts) - len(self._homes)))

    def _is_unproven(self, contact: Contact, reason: str, now: float) -> None:
        known = self._unproven.get(contact.address)
        if reason != known and (known is not None or len(self._unproven) < MAX_UNPROVEN):
            self._unproven[contact.address] = reason
            self._publish_soon(now + pace.NAMED_WITHIN_S)

    def _clear(self, contact: Contact, now: float) -> None:
        """Nobody is there who is no node of the cluster, or nobody is looked for there any more."""
        if self._unproven.pop(contact.address, None) is not None:
            self._publish_soon(now + pace.NAMED_WITHIN_S)

    def _lost(self, contact: Contact, now: float, *, at_once: bool) -> None:
        assert contact.greeting is not None
        member = contact.greeting.member
        contact.alive_at = now
        if contact.leaving:
            self._leaves(contact, now)
            self._rest(contact, now)
            return
        if at_once:
            self._dial(contact, now)
        else:
            self._enter(contact, State.RESTING, now + pace.RETRY_S)
        # Whichever address it is reached at first will be its home.
        self._wake_shadows(member.id, now)
        if self._learning:
            self._meet(member.address, now)

    def _leaves(self, contact: Contact, now: float) -> None:
        """Have no node live at this address, if one did."""
        if contact.greeting is None:
            return
        id = contact.greeting.member.id
        contact.greeting = None
        contact.leaving = False
        del self._homes[id]
        self._publish_soon(now)
        self._wake_shadows(id, now)

    def _wake_shadows(self, id: str, now: float) -> None:
        for contact in [*self._contacts.values()]:
            if contact.shadowed == id and contact.state is State.RESTING:
                self._dial(contact, now)

    def _hang_up(self, contact: Contact) -> None:
        self._actions.append(HangUp(contact.address))

    def _enter(self, contact: Contact, state: State, at: float | None) -> None:
        if contact.at is not None:
            self._deadlines.discard(contact, contact.at)
        if contact.connected and state not in CONNECTED:
            self._rumours.gone(contact.address)
        self._dialling += (state is State.DIALLING) - (contact.state is State.DIALLING)
        contact.state, contact.at = state, at
        if at is not None:
            self._deadlines.add(contact, at)

    def _notice(self, contact: Contact, what: str, why: str) -> None:
        if contact.noticed != what:
            contact.noticed = what
            self._actions.append(Notice(contact.address, f"{what}: {why}"))

    # What follows from it.

    def _settle(self, now: float) -> None:
        if self._publish_at is not None and self._publish_at <= now:
            self._publish_at, self._published_at = None, now
            self._publish()
        if self._learning and (address := self._rumours.next()):
            self._actions.append(Ask(address))

    def _publish_soon(self, at: float) -> None:
        at = max(at, self._published_at + pace.apart_s(len(self._homes)))
        self._publish_at = at if self._publish_at is None else min(self._publish_at, at)

    def _publish(self) -> None:
        # One that drains alone has nobody to leave its topics to.
        snapshot = Snapshot([*self._members()] or [self._me], self._unproven)
        if self.snapshot is None or not self.snapshot.says_the_same(snapshot):
            self.snapshot = snapshot
            self._rumours.read(snapshot.version)
            self._actions.append(Publish(snapshot))

    def _members(self) -> Iterator[Member]:
        if not self._draining:
            yield self._me
        for contact in self._homes.values():
            if contact.greeting is not None and not contact.leaving:
                yield contact.greeting.member
