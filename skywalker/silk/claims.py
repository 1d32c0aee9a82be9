"""What a node says of itself, and where that came from: whether it is believed, has to be asked there, or cannot be.

An origin is the address at the other end of the connection on which a message came, as endpoints.canonical() writes it;
None where that is not known. A stranger who names endpoints at the address that it comes from is taken at its word. One
who names others is asked there first, or a node could be made to knock wherever somebody likes.
"""

from __future__ import annotations

import math
from typing import Final

from skywalker.address import Address
from skywalker.silk import pace
from skywalker.silk.doubts import Doubts
from skywalker.silk.endpoints import HERE, Origin, address_of, canonical, host
from skywalker.silk.info import NodeInfo
from skywalker.silk.outbox import Outbox
from skywalker.silk.peers import Peer, Peers


def is_near(origin: Origin, me: NodeInfo) -> bool:
    """Whether a message has come from the machine of the node `me`."""
    return origin in (None, HERE, host(me.router))


def can_mean(origin: Origin, endpoint: str, me: NodeInfo) -> bool:
    """Whether this endpoint means the same place to us as to who told us of it."""
    return host(endpoint) != HERE or is_near(origin, me)


def is_its_word(origin: Origin, info: NodeInfo, me: NodeInfo) -> bool:
    """Whether a node that says so of itself comes from where it says that it is."""
    own = {origin, HERE, host(me.router)} if is_near(origin, me) else {origin}
    return origin is None or {host(info.router), host(info.pub)} <= own


def is_of(origin: Origin, peer: Peer, *, is_broadcast: bool) -> bool:
    """Whether a message in the name of a member has come from an address from which that one sends."""
    if origin is None or origin in peer.origins:
        return True
    pub = address_of(peer.info.pub)
    # Which address a name leads to, nobody knows but ZeroMQ.
    return is_broadcast and (host(peer.info.pub) == origin or (pub is not None and not _is_number(pub)))


def _is_number(address: Address) -> bool:
    number = canonical(address.host)
    return number == HERE or ":" in number or number.replace(".", "").isdigit()


MAX_MEMBERS: Final = 2048
"""Nodes of one cluster: the list of them has to fit in a message."""


MAX_UNPROVEN: Final = 512
"""Of these, members that have never answered anything: beyond that they are asked before others are let in."""


class Claims:
    """Claims to be one of `peers`, of whom there may be `most`."""

    def __init__(self, outbox: Outbox, peers: Peers, doubts: Doubts, most: int) -> None:
        self._outbox = outbox
        self._peers = peers
        self._doubts = doubts
        self._most = min(most, MAX_MEMBERS)
        self._asked_at = -math.inf

    def obstacle(self, info: NodeInfo, now: float, origin: Origin) -> str:
        """Return why a node cannot be a member, nothing if it can. Members that may be in its way are asked."""
        me, peer = self._outbox.me, self._peers.get(info.id)
        for endpoint in (info.router, info.pub):
            if endpoint in (me.router, me.pub):
                return f"{endpoint} is an endpoint of another node"
            if not can_mean(origin, endpoint, me):
                return f"{endpoint} is nowhere to others than those on its own machine"
        if peer is not None and not peer.info.is_at_the_place_of(info) and not self.is_surely(peer, origin):
            self._doubts.challenged(peer, now)
            return "another member has this id, or had it until now"
        is_full = len(self._peers) >= self._most or self._peers.unproven >= MAX_UNPROVEN
        if (peer is None and is_full) or not self._peers.has_room(info):
            self._ask_the_unproven(now)
            return f"the cluster is full: it has {len(self._peers)} members, of {self._most} that there is room for"
        return ""

    def _ask_the_unproven(self, now: float) -> None:
        """Some may have been made up: who has never answered has to do so."""
        if now - self._asked_at >= pace.ANSWER_S:
            self._asked_at = now
            for each in self._peers:
                if not each.has_answered:
                    self._doubts.challenged(each, now)

    def is_surely(self, peer: Peer, origin: Origin) -> bool:
        """Whether only this member itself can have said what has come from there in its name."""
        return origin is None or (origin == peer.host != HERE and self._peers.is_alone(peer))

    def is_believed(self, info: NodeInfo, origin: Origin) -> bool:
        """Whether it takes no more than this word of a node for it to be what it says."""
        peer = self._peers.get(info.id)
        if peer is not None:
            return (peer.info == info and origin in (None, *peer.origins)) or self.is_surely(peer, origin)
        is_free = self._peers.at(info.router) is None
        return origin is None or (is_free and is_its_word(origin, info, self._outbox.me))
