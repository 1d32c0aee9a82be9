"""Who is in the cluster, by what its members say: joins, signs of life, silence and leaves.

Knows no socket and no clock. A shell hands in every message of an internal type, calls tick() when wait() is over,
and carries out the actions. `now` is in seconds on any one clock.

Only a node's own word makes it a member; what others say of it is a reason to ask it. So is what may only be said in
its name: that it leaves, moves, or is at the endpoint of another (see claims). So that nobody is missed, each
sign of life names the set of members that its sender sees, its version: who sees another for long asks for the list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from skywalker.silk import pace
from skywalker.silk.claims import MAX_MEMBERS, Claims, can_mean, is_its_word, is_of
from skywalker.silk.doubts import Doubts
from skywalker.silk.endpoints import Origin, host
from skywalker.silk.events import Changed, Failed, Joined, Left
from skywalker.silk.info import NodeInfo
from skywalker.silk.outbox import Action, Ignore, Listen, Outbox, Part, Refused
from skywalker.silk.peers import Gone, Peer, Peers
from skywalker.silk.visits import Visits
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

MAX_VERSION: Final = 64
"""Characters of a version; ours have 16."""

ENVELOPE: Final = 4 * 12 * wire.MAX_NAME + 1000
"""Bytes that a reply takes besides its data, at most: of a name that is not ASCII, a character takes twelve."""

MAX_VERSIONS: Final = 256
"""Versions known to be read. One that is forgotten is at most read again."""


class Questions:
    """Whom to ask which members it sees: one who sees others than we do, for longer than it takes all to see the same.

    A version names a set of members, so that one that was read once tells nothing new. It is read again all the same,
    ever more rarely: something may have been lost, or two may not see each other whom we see both.
    """

    def __init__(self, period: float, now: float) -> None:
        """`period` is our own keepalive's, in seconds."""
        self.latest = ""  # the id of the message that asked last
        self._period = period
        self._asked_at = now
        self._read: dict[str, tuple[int, float]] = {}  # by version: how often it was asked for, and when it last was

    def is_due(self, version: str, changed_at: float, now: float) -> bool:
        """Whether to ask one who sees this version, which is not ours; ours has last changed at `changed_at`."""
        # Just after a change it is only that not all have seen it. But where there is always one, ask all the same.
        since_change, since_question = now - changed_at, now - self._asked_at
        spread = pace.SPREADS * self._period
        if min(since_change, since_question) <= spread and since_question <= pace.ASK_AGAIN * self._period:
            return False
        times, asked_at = self._read.get(version, (0, now - self._period))
        return times == 0 or now - asked_at >= min(spread * 2**times, pace.READ_AGAIN * self._period)

    def asked(self, version: str, message_id: str, now: float) -> None:
        """One who sees this version was asked."""
        times, _ = self._read.pop(version, (0, now))
        self._read[version] = (min(times + 1, 16), now)
        if len(self._read) > MAX_VERSIONS:
            del self._read[next(iter(self._read))]
        self.latest, self._asked_at = message_id, now


class Membership:
    """The cluster as the node `me` sees it, at first of itself alone.

    `luck` returns numbers from 0 to below 1, `new_id` an id for each message; there is room for `most` other members.
    """

    def __init__(
        self,
        me: NodeInfo,
        *,
        luck: Callable[[], float],
        new_id: Callable[[], str],
        now: float,
        most: int = MAX_MEMBERS,
    ) -> None:
        self.has_left = False
        self.dropped = 0  # messages that made no sense
        self._luck = luck
        self._outbox = Outbox(me, new_id)
        self._visits = Visits(self._outbox, luck)
        self._peers = Peers(me.id, now)
        self._gone = Gone()
        self._doubts = Doubts(self._outbox, self._peers, luck)
        self._claims = Claims(self._outbox, self._peers, self._doubts, most)
        self._questions = Questions(me.keepalive_s, now)
        self._beat_at = now + me.keepalive_s * luck()
        self._period = me.keepalive_s
        self._rejoined_at = now - self._period
        self._rejoined_by = ""  # the id of the message that asked to be let in again
        self._refused_at = -math.inf

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
            self._remind(peer)

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self.has_left:
            return
        if self._beat_at <= now:
            self._beat(now)
        for peer in self._doubts.tick(now):
            if peer.says_farewell:
                self._has_gone(peer, now)
                continue
            self._remove(peer, now)
            self._outbox.do(Failed(peer.info))
            # It may be on the other side of a cut, with others.
            if peer.heard_at > peer.since:
                self._visits.lost(peer.info.router, peer.id, now)
        self._visits.tick(now)

    # What others say.

    def received(self, message: Message, now: float, origin: Origin = None) -> None:
        """Take in a message of an internal type from there; if its `dest` is ALL, it was broadcast, and else sent."""
        if self.has_left:
            return
        if message.src == self.me.id:
            self._is_our_own(message, now)
            return
        is_broadcast = message.dest == wire.ALL
        is_for_us = is_broadcast or message.dest == self.me.id or (not message.dest and message.type in wire.TO_ANYBODY)
        if not is_for_us or is_broadcast != (message.type in wire.TO_ALL):
            self.dropped += 1  # for somebody who was here before us; or not said as it has to be
            return
        peer = self.heard(message.src, now, origin, is_broadcast=is_broadcast)
        match message:
            case Message(type=wire.KEEPALIVE):
                if peer is not None and isinstance(message.data, dict):
                    self._sees(peer, message.data.get("cluster"), now)
            case Message(type=wire.REPLY):
                self._answered(message, now, origin)
            case Message(type=wire.JOIN | wire.CONNECT):
                self._introduced(message, now, origin)
            case Message(type=wire.MEMBERS, data=None):
                self._reply(message, self._list())
            case Message(type=wire.MEMBERS):
                self._introduced(message, now, origin)
            case Message(type=wire.LEAVE):
                if peer is not None and self._claims.is_surely(peer, origin):
                    self._has_gone(peer, now)
                elif peer is not None:
                    self._doubts.challenged(peer, now, says_farewell=True)
            case Message(type=wire.FAIL, data={"id": str(id)}):
                self._failed(id, message.src, now)
            case _:
                self.dropped += 1

    def heard(self, id: str, now: float, origin: Origin = None, *, is_broadcast: bool = False) -> Peer | None:
        """A message of whatever type has come in the name of this node; return it if it is a member, and that is so."""
        peer = self._peers.get(id)
        if peer is None or not is_of(origin, peer, is_broadcast=is_broadcast):
            return None
        self._doubts.heard(peer, now)
        return peer

    def unknown_to(self, id: str) -> None:
        """A member said that it does not know us."""
        if (peer := self._peers.get(id)) is not None:
            self._remind(peer)

    def _is_our_own(self, message: Message, now: float) -> None:
        # The endpoint at which we were to join is our own, by another name. Or a node has our id.
        if (visit := self._visits.asked_by(message.id)) is not None:
            self._visits.reached(visit.endpoint, self.me.id, now)
            self._outbox.do(Part(visit.endpoint))
        else:
            self.dropped += 1

    def _introduced(self, message: Message, now: float, origin: Origin) -> None:
        info = NodeInfo.parse(message.data)
        if info is None or info.id != message.src:
            self.dropped += 1
            self._refuse(message, f"the data of a {message.type} must be the node object of its sender", now)
        elif obstacle := self._claims.obstacle(info, now, origin):
            self.dropped += 1
            self._refuse(message, obstacle, now, info.router if is_its_word(origin, info, self.me) else "")
        else:
            # A list is what was seen until now: who takes itself for a member learns from it that it was none.
            without = info.id if message.type == wire.JOIN else ""
            answer = self.me.as_map() if message.type == wire.CONNECT else self._list(without)
            if self._claims.is_believed(info, origin):
                if self._peers.get(info.id) is None:
                    # ZeroMQ never gets over it if whoever was there before did not let us in.
                    self._outbox.do(Part(info.router))
                self._admit(info, now, origin)
                self._reply(message, answer)
            elif self._ask(info, now):
                self._outbox.reply(message, answer, info.router)

    def _answered(self, message: Message, now: float, origin: Origin) -> None:
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
                    self._outbox.do(Refused(visit.endpoint, reason[: wire.MAX_REASON]))
            return
        # What was sent there, nobody else can answer.
        peer = self._peers.get(info.id)
        is_answer = (peer is not None and message.reply in peer.asked) or (
            visit is not None and visit.endpoint == info.router
        )
        was_asked = visit is not None or message.reply in {self._questions.latest, self._rejoined_by} - {""}
        others = self._listed(cluster, now, origin) if cluster is not None and was_asked else set()
        if not self._gone.is_gone(info.id, now) and not self._claims.obstacle(info, now, origin):
            if is_answer or self._claims.is_believed(info, origin):
                self._admit(info, now, origin, others)
            else:
                self._ask(info, now)
        if (peer := self._peers.get(info.id)) is not None and is_answer:
            self._doubts.answered(peer, now)
        if visit is not None:
            if visit.endpoint != info.router:
                # It calls its endpoint by another name than we do.
                self._visits.reached(visit.endpoint, info.id, now, others)
                self._outbox.do(Part(visit.endpoint))
            if visit.said is not self.me and (peer := self._peers.get(info.id)) is not None:
                self._remind(peer)  # we have changed meanwhile
        if cluster is not None and message.reply == self._questions.latest and self.me.id not in cluster:
            self._remind_all_who_see_as(info.id)

    def _listed(self, cluster: Mapping[str, Any], now: float, origin: Origin) -> set[str]:
        """Go to those whom we do not know; return where they are."""
        strangers = set()
        for told in cluster.values():
            info = NodeInfo.parse(told)
            if info is None or info.id == self.me.id or self._peers.get(info.id) is not None:
                continue
            if not self._gone.is_gone(info.id, now) and can_mean(origin, info.router, self.me):
                self._visits.told(info.router, info.id, now)
                strangers.add(info.router)
        return strangers

    def _sees(self, peer: Peer, version: Any, now: float) -> None:
        """A member sees the members of this version: if we see others, ask it whom."""
        if not isinstance(version, str) or len(version) > MAX_VERSION:
            return
        peer.version = version
        if version != self.version and self._questions.is_due(version, self._peers.changed_at, now):
            id = self._outbox.send(peer.info.router, peer.id, wire.MEMBERS, self.me.as_map())
            self._questions.asked(version, id, now)

    def _failed(self, id: str, teller: str, now: float) -> None:
        """Somebody says that a node has failed."""
        self._doubts.told(id)
        peer = self._peers.get(id)
        if id == self.me.id:
            self._rejoin(teller, now)
        elif peer is not None:
            self._doubts.reported(peer, now)

    # Members.

    def _ask(self, info: NodeInfo, now: float) -> bool:
        """Ask where a node says that it is whether that is so; return False of a stranger that has to wait for it."""
        peer = self._peers.get(info.id)
        if peer is None:
            # Whoever is where another member is tells its id itself.
            is_taken = self._peers.at(info.router) is not None
            return self._visits.told(info.router, "" if is_taken else info.id, now)
        self._doubts.inquire(peer, now)
        return True

    def _admit(self, info: NodeInfo, now: float, origin: Origin = None, others: Set[str] = frozenset()) -> None:
        """Have a node be a member, as it says itself; it told us of others, who are at these endpoints."""
        peer = self._peers.get(info.id)
        if peer is not None and peer.info.is_at_the_place_of(info):
            if origin is not None:
                peer.comes_from(origin)
            if peer.info != info:
                self._peers.change(peer, info)
                self._outbox.do(Changed(info))
            return
        if peer is not None:
            self._remove(peer, now)
        if (other := self._peers.at(info.router)) is not None:
            # It was there before, and cannot be there any more.
            self._remove(other, now)
            self._outbox.do(Failed(other.info))
        self._gone.is_back(info.id)
        self._doubts.told(info.id)
        new = Peer(info, since=now, heard_at=now, origins=frozenset({host(info.router), origin}))
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

    def _has_gone(self, peer: Peer, now: float) -> None:
        self._gone.has_left(peer.id, now)
        self._remove(peer, now)
        self._outbox.do(Left(peer.info))

    # What we say.

    def _beat(self, now: float) -> None:
        self._outbox.broadcast(wire.KEEPALIVE, {"cluster": self.version})
        self._beat_at = now + self.me.keepalive_s

    def _list(self, without: str = "") -> dict[str, Any]:
        """Return who is there, but for one, as far as that fits in a message."""
        me = self.me.as_map()
        return {"cluster": self._peers.brief(without, wire.MAX_MESSAGE - len(json.dumps(me)) - ENVELOPE), "me": me}

    def _reply(self, message: Message, data: Any) -> None:
        """Answer a message, to where its sender is as a member, or the way on which it came."""
        peer = self._peers.get(message.src)
        self._outbox.reply(message, data, None if peer is None else peer.info.router)

    def _refuse(self, message: Message, reason: str, now: float, endpoint: str = "") -> None:
        """Say no to a message, if need be to the endpoint that its sender says it has, and is believed to have."""
        if endpoint in ("", self.me.router) or self._peers.at(endpoint) is not None:
            self._reply(message, {"error": reason})
        elif now - self._refused_at >= pace.REFUSE_S:
            self._refused_at = now
            self._outbox.reply(message, {"error": reason}, endpoint)
            self._outbox.do(Part(endpoint))

    def _remind(self, peer: Peer) -> None:
        """Say to a member what this node says of itself."""
        self._outbox.send(peer.info.router, peer.id, wire.CONNECT, self.me.as_map())

    def _remind_all_who_see_as(self, teller: str) -> None:
        """Remind one who does not know us, and all who see the same as that one."""
        peer = self._peers.get(teller)
        if peer is not None:
            for each in self._peers:
                if each.version == peer.version:
                    self._remind(each)

    def _rejoin(self, teller: str, now: float) -> None:
        """Some think that we are dead: be let in by the one who says so, and known to all others."""
        if now - self._rejoined_at >= self._period:
            self._rejoined_at = now
            for peer in self._peers:
                if peer.id == teller:
                    # It has heard nothing of us for long: so may go on what TCP tries ever more rarely to send there.
                    self._outbox.do(Part(peer.info.router))
                    self._rejoined_by = self._outbox.send(peer.info.router, peer.id, wire.JOIN, self.me.as_map())
                else:
                    self._remind(peer)
