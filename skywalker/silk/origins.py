"""Where messages have come from, and so what their senders can be believed.

An origin is the address at the other end of the connection on which a message came, as endpoints.canonical() writes it;
None where that is not known. A stranger who names endpoints at the address that it comes from is taken at its word. One
who names others is asked there first, or a node could be made to knock wherever somebody likes.
"""

from __future__ import annotations

from skywalker.address import Address
from skywalker.silk import endpoints
from skywalker.silk.endpoints import HERE, host
from skywalker.silk.info import NodeInfo
from skywalker.silk.peers import Peer

Origin = str | None


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
    pub = endpoints.address_of(peer.info.pub)
    # Which address a name leads to, nobody knows but ZeroMQ.
    return is_broadcast and (host(peer.info.pub) == origin or (pub is not None and not _is_number(pub)))


def _is_number(address: Address) -> bool:
    host = endpoints.canonical(address.host)
    return host == HERE or ":" in host or host.replace(".", "").isdigit()
