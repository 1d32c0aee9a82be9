"""Who is in the cluster, by what its members say: joins, signs of life, silence and leaves.

Knows no socket and no clock. A shell hands in every message of an internal type, calls tick() when wait() is over,
and carries out the actions. `now` is in seconds on any one clock.

Only a node's own word makes it a member; what others say of it is a reason to ask it. So that nobody is missed, each
sign of life names the set of members that its sender sees, its version: who sees another for long asks for the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from skywalker.silk import pace
from skywalker.silk.actions import Action, Ignore, Listen, Part, Refused
from skywalker.silk.doubts import Doubts
from skywalker.silk.events import Changed, Failed, Joined, Left
from skywalker.silk.info import NodeInfo
from skywalker.silk.outbox import Outbox
from skywalker.silk.peers import Peer, Peers
from skywalker.silk.questions import Questions
from skywalker.silk.visits import Visits
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

MAX_MEMBERS: Final = 2048
"""Nodes of one cluster: the list of them has to fit in a message."""


class Membership:
    """The cluster as the node `me` sees it, at first of itself alone.

    `luck` returns numbers from 0 to below 1, `new_id` another id for each message.
    """

    def __init__(self, me: NodeInfo, *, luck: Callable[[], float], new_id: Callable[[], str], now: float) -> None:
        self.has_left = False
        self.dropped = 0  # messages that made no sense
        self._luck = luck
        self._outbox = Outbox(me, new_id)
        self._visits = Visits(self._outbox, luck)
        self._peers = Peers(me.id, now)
        self._gone: dict[str, float] = {}  # who has left, and when
        self._doubts = Doubts(self._outbox, self._peers, luck)
        self._questions = Questions(me.keepalive_s, now)
        self._rejoined_at = now - me.keepalive_s
        self._rejoined_by = ""  # the id of the message that asked to be let in again
        self._beat_at = now + me.keepalive_s * luck()

    @property
    def me(self) -> NodeInfo:
        """This node, as it says itself."""
        return self._outbox.me

    @property
    def members(self) -> dict[str, NodeInfo]:
        """The other members, by id."""
        return self._peers.infos

    @property
    def version(self) -> str:
        """What all who see the same members call that."""
        return self._peers.version

    def member(self, id: str) -> NodeInfo | None:
        """Return one of the other members."""
        peer = self._peers.get(id)
        return None if peer is None else peer.info

    def actions(self) -> list[Action]:
        """Return what is to be done now, in this order, and forget it."""
        return self._outbox.take()

    def wait(self, now: float) -> float | None:
        """Return the seconds until tick() has something to do, at least 0; None if only an event can change that."""
        if self.has_left:
            return None
        waits = [self._doubts.wait(now), self._visits.wait(now)]
        return min([max(0.0, self._beat_at - now), *(wait for wait in waits if wait is not None)])

    # What this node does.

    def join(self, endpoint: str, now: float) -> None:
        """Ask at an endpoint to be let in, over and over until somebody answers. Reached tells that, and that all whom
        that one knows have been met, or have had some time for it.

        Should whoever that is be a member no more, ask there again.
        """
        if self.has_left:
            self.has_left = False
            self._beat(now)
        peer = self._peers.at(endpoint)
        there = self.me.id if endpoint == self.me.router else "" if peer is None else peer.id
        self._visits.join(endpoint, there, now)

    def abandon(self, endpoint: str) -> None:
        """Ask there no more."""
        self._visits.abandon(endpoint)

    def leave(self, now: float) -> None:
        """Say so to all, and then nothing more until join()."""
        if not self.has_left:
            self.has_left = True
            self._outbox.broadcast(wire.LEAVE)
            for peer in self._peers:
                self._remove(peer, now)
            self._visits.clear()
            self._doubts.clear()

    def change(self, me: NodeInfo) -> None:
        """Say something else of this node from now on, and tell the members; its id and endpoints stay."""
        self._outbox.me = me
        for peer in self._peers:
            self._connect(peer)

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self.has_left:
            return
        if self._beat_at <= now:
            self._beat(now)
        for peer in self._doubts.tick(now):
            self._remove(peer, now)
            self._outbox.do(Failed(peer.info))
            # It may be on the other side of a cut, with others.
            if peer.heard_at > peer.since:
                self._visits.lost(peer.info.router, peer.id, now)
        self._visits.tick(now)

    # What others say.

    def received(self, message: Message, now: float) -> None:
        """Take in a message, directly sent or broadcast; its type is an internal one."""
        if self.has_left:
            return
        if message.src == self.me.id:
            self._is_our_own(message, now)
            return
        if message.dest not in (self.me.id, wire.ALL) and (message.dest or message.type not in wire.TO_ANYBODY):
            self.dropped += 1  # for somebody who was here before us
            return
        peer = self.heard(message.src, now)
        match message:
            case Message(type=wire.KEEPALIVE):
                if peer is not None and isinstance(message.data, dict):
                    self._sees(peer, message.data.get("cluster"), now)
            case Message(type=wire.REPLY):
                self._answered(message, now)
            case Message(type=wire.JOIN | wire.CONNECT):
                self._introduced(message, now)
            case Message(type=wire.MEMBERS, data=None):
                self._reply(message, self._list())
            case Message(type=wire.MEMBERS):
                self._introduced(message, now)
            case Message(type=wire.LEAVE):
                if peer is not None:
                    self._gone[peer.id] = now
                    self._remove(peer, now)
                    self._outbox.do(Left(peer.info))
            case Message(type=wire.FAIL, data={"id": str(id)}):
                self._failed(id, message.src, now)
            case _:
                self.dropped += 1

    def heard(self, id: str, now: float) -> Peer | None:
        """A message of whatever type has come from this node; return it if it is a member."""
        peer = self._peers.get(id)
        if peer is not None:
            self._doubts.heard(peer, now)
        return peer

    def unknown_to(self, id: str) -> None:
        """A member said that it does not know us."""
        if (peer := self._peers.get(id)) is not None:
            self._connect(peer)

    def _is_our_own(self, message: Message, now: float) -> None:
        # The endpoint at which we were to join is our own, by another name. Or a node has our id.
        visit = self._visits.asked_by(message.id)
        if visit is None:
            self.dropped += 1
        else:
            self._visits.reached(visit.endpoint, self.me.id, now)
            self._outbox.do(Part(visit.endpoint))

    def _introduced(self, message: Message, now: float) -> None:
        info = NodeInfo.parse(message.data)
        if info is None or info.id != message.src:
            self._refuse(message, f"the data of a {message.type} must be the node object of its sender")
        elif obstacle := self._obstacle(info):
            self._refuse(message, obstacle, info.router)
        else:
            # A list is what was seen until now: who takes itself for a member learns from it that it was none.
            without = info.id if message.type == wire.JOIN else ""
            answer = self.me.as_map() if message.type == wire.CONNECT else self._list(without)
            if self._peers.get(info.id) is None:
                # ZeroMQ never gets over it if whoever was there before did not let us in.
                self._outbox.do(Part(info.router))
            self._admit(info, now)
            self._reply(message, answer)

    def _answered(self, message: Message, now: float) -> None:
        cluster: Any = None
        match message.data:
            case {"cluster": dict(cluster), "me": told}:
                info = NodeInfo.parse(told)
            case told:
                info = NodeInfo.parse(told)
        visit = self._visits.asked_by(message.reply)
        if info is None or info.id != message.src:
            self.dropped += 1
            match message.data:
                case {"error": str(reason)} if visit is not None:
                    self._outbox.do(Refused(visit.endpoint, reason))
            return
        was_asked = visit is not None or message.reply in (self._questions.latest, self._rejoined_by)
        others = self._listed(cluster, now) if cluster is not None and was_asked else set()
        if not self._has_left(info.id, now) and not self._obstacle(info):
            self._admit(info, now, others)
        if visit is not None:
            if visit.endpoint != info.router:
                # It calls its endpoint by another name than we do.
                self._visits.reached(visit.endpoint, info.id, now, others)
                self._outbox.do(Part(visit.endpoint))
            if visit.said is not self.me and (peer := self._peers.get(info.id)) is not None:
                self._connect(peer)  # we have changed meanwhile
        if cluster is not None and message.reply == self._questions.latest and self.me.id not in cluster:
            self._is_missing_at(info.id)

    def _listed(self, cluster: Mapping[str, Any], now: float) -> set[str]:
        """Go to those whom we do not know; return where they are."""
        strangers = set()
        for told in cluster.values():
            info = NodeInfo.parse(told)
            if info is None or info.id == self.me.id or self._peers.get(info.id) is not None:
                continue
            if not self._has_left(info.id, now):
                self._visits.told(info.router, info.id, now)
                strangers.add(info.router)
        return strangers

    def _is_missing_at(self, teller: str) -> None:
        """Make ourselves known to one who does not know us, and to all who see the same as that one."""
        peer = self._peers.get(teller)
        if peer is not None:
            for each in self._peers:
                if each.version == peer.version:
                    self._connect(each)

    def _sees(self, peer: Peer, version: Any, now: float) -> None:
        """A member sees the members of this version: if we see others, ask it whom."""
        if not isinstance(version, str):
            return
        peer.version = version
        if version != self.version and self._questions.is_due(version, self._peers.changed_at, now):
            self._questions.asked(version, self._send(peer, wire.MEMBERS, self.me.as_map()), now)

    def _failed(self, id: str, teller: str, now: float) -> None:
        """Somebody says that a node has failed."""
        self._doubts.told(id)
        peer = self._peers.get(id)
        if id == self.me.id:
            self._rejoin(teller, now)
        elif peer is not None:
            self._doubts.reported(peer, now)

    # Members.

    def _obstacle(self, info: NodeInfo) -> str:
        """Return why a node cannot be a member, nothing if it can."""
        if info.router == self.me.router:
            return f"{info.router} is an endpoint of another node"
        if self._peers.get(info.id) is None and len(self._peers) >= MAX_MEMBERS:
            return f"the cluster is full: it has {MAX_MEMBERS} members"
        return ""

    def _admit(self, info: NodeInfo, now: float, others: Set[str] = frozenset()) -> None:
        """Have a node be a member, as it says itself; it told us of others, who are at these endpoints."""
        peer = self._peers.get(info.id)
        if peer is not None and (peer.info.router, peer.info.pub) == (info.router, info.pub):
            if peer.info != info:
                peer.info = info
                self._outbox.do(Changed(info))
            return
        if peer is not None:
            self._remove(peer, now)
        if (other := self._peers.at(info.router)) is not None:
            # It was there before, and cannot be there any more.
            self._remove(other, now)
            self._outbox.do(Failed(other.info))
        self._gone.pop(info.id, None)
        self._doubts.told(info.id)
        new = Peer(info, since=now, heard_at=now)
        self._peers.add(new, now)
        self._doubts.watch(new)
        self._outbox.do(Listen(info.pub), Joined(info) if peer is None else Changed(info))
        self._visits.reached(info.router, info.id, now, others)

    def _remove(self, peer: Peer, now: float) -> None:
        self._peers.remove(peer, now)
        if not self._peers.broadcasts_at(peer.info.pub):
            self._outbox.do(Ignore(peer.info.pub))
        self._outbox.do(Part(peer.info.router))
        self._visits.gone(peer.id, now)

    def _has_left(self, id: str, now: float) -> bool:
        return now - self._gone.get(id, now - pace.LEFT_S) < pace.LEFT_S

    # What we say.

    def _beat(self, now: float) -> None:
        self._outbox.broadcast(wire.KEEPALIVE, {"cluster": self.version})
        self._beat_at = now + self.me.keepalive_s
        self._gone = {id: at for id, at in self._gone.items() if now - at < pace.LEFT_S}

    def _rejoin(self, teller: str, now: float) -> None:
        """Some think that we are dead: be let in by the one who says so, and known to all others."""
        if now - self._rejoined_at >= self.me.keepalive_s:
            self._rejoined_at = now
            for peer in self._peers:
                if peer.id == teller:
                    self._rejoined_by = self._send(peer, wire.JOIN, self.me.as_map())
                else:
                    self._connect(peer)

    def _list(self, without: str = "") -> dict[str, Any]:
        cluster = {id: info.brief() for id, info in self.members.items() if id != without}
        return {"cluster": cluster, "me": self.me.as_map()}

    def _connect(self, peer: Peer) -> None:
        self._send(peer, wire.CONNECT, self.me.as_map())

    def _send(self, peer: Peer, type: str, data: Any) -> str:
        return self._outbox.send(peer.info.router, peer.id, type, data)

    def _reply(self, message: Message, data: Any) -> None:
        peer = self._peers.get(message.src)
        self._outbox.reply(message, data, None if peer is None else peer.info.router)

    def _refuse(self, message: Message, reason: str, endpoint: str = "") -> None:
        """Say no to a message, if need be to the endpoint that its sender says it has."""
        self.dropped += 1
        if endpoint in ("", self.me.router) or self._peers.at(endpoint) is not None:
            self._reply(message, {"error": reason})
        else:
            self._outbox.reply(message, {"error": reason}, endpoint)
            self._outbox.do(Part(endpoint))
