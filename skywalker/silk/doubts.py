"""Which members may be dead: who is silent is suspected and asked, and given up if it does not answer that either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skywalker.deadlines import Deadlines
from skywalker.silk import pace
from skywalker.silk.events import Recovered, Suspected
from skywalker.silk.outbox import Outbox
from skywalker.silk.peers import Peer, Peers
from skywalker.wire import silk as wire


class Doubts:
    """Doubts about `peers`, and the failures that are still to be told."""

    def __init__(self, outbox: Outbox, peers: Peers, luck: Callable[[], float]) -> None:
        self._outbox = outbox
        self._peers = peers
        self._luck = luck
        self._failures: dict[str, float] = {}  # by id, when each is to be told
        self._deadlines = Deadlines()  # of failures

    def wait(self, now: float) -> float | None:
        """Return the seconds until tick() has something to do, None if it has not."""
        waits = [self._peers.wait(now), self._deadlines.wait(now)]
        return min((wait for wait in waits if wait is not None), default=None)

    def heard(self, peer: Peer, now: float) -> None:
        """A member has said something."""
        peer.heard_at = now
        if peer.probes and not peer.must_answer:
            peer.probes = 0
            self.watch(peer)
            if peer.is_suspected:
                peer.is_suspected = False
                self._outbox.do(Recovered(peer.info))

    def answered(self, peer: Peer, now: float) -> None:
        """A member has answered what was sent to it, which nobody else has read."""
        self._peers.prove(peer)
        peer.must_answer = peer.says_farewell = False
        self.heard(peer, now)

    def challenged(self, peer: Peer, now: float, *, says_farewell: bool = False) -> None:
        """Somebody says what cannot be if this member is where it was: it is asked, and only its answer counts."""
        if not peer.must_answer:
            peer.must_answer, peer.says_farewell = True, says_farewell
            peer.asked = ()  # what is answered to those says nothing of now
            self._peers.look_at(peer, max(now, peer.asked_at + period_s(peer)))

    def watch(self, peer: Peer) -> None:
        """Suspect a member once it has been silent for too long since it was heard."""
        self._peers.look_at(peer, peer.heard_at + pace.SILENT * peer.info.keepalive_s)

    def reported(self, peer: Peer, now: float) -> None:
        """Another says that this member has failed: it is asked, not believed."""
        if not (peer.probes or peer.is_reported or peer.must_answer) and now - peer.asked_at >= period_s(peer):
            peer.is_reported = True
            self._peers.look_at(peer, now + self._spread(peer))

    def tick(self, now: float) -> Iterator[Peer]:
        """Do what is due; yield the members to give up."""
        for id in self._deadlines.due(now):
            if self._failures.get(id, now + 1) <= now:
                del self._failures[id]
                self._outbox.broadcast(wire.FAIL, {"id": id})
        for peer in self._peers.due(now):
            silent_until = peer.heard_at + pace.SILENT * peer.info.keepalive_s
            if peer.is_to_be_asked and now - peer.asked_at >= period_s(peer):
                self.ask(peer, now)
            if not (peer.probes or peer.is_reported or peer.must_answer) and silent_until > now:
                self._peers.look_at(peer, silent_until)
            elif peer.probes < pace.PROBES:
                self._probe(peer, now)
            else:
                if not peer.says_farewell:
                    # All others notice at this moment too, and one that says so is enough.
                    self._failures[peer.id] = at = now + self._spread(peer)
                    self._deadlines.add(peer.id, at)
                yield peer

    def inquire(self, peer: Peer, now: float) -> None:
        """Something else is said in the name of a member: ask it, at once or when it has been a moment since."""
        if now - peer.asked_at >= period_s(peer):
            self.ask(peer, now)
        elif not peer.is_to_be_asked:
            peer.is_to_be_asked = True
            self._peers.look_at(peer, min(peer.at, peer.asked_at + period_s(peer)))

    def ask(self, peer: Peer, now: float) -> None:
        """Ask a member what it says of itself. It may take longer to answer than until it is asked again."""
        peer.is_to_be_asked = False
        id = self._outbox.send(peer.info.router, peer.id, wire.CONNECT, self._outbox.me.as_map())
        peer.asked = (*peer.asked, id)[-pace.PROBES :]
        peer.asked_at = now

    def told(self, id: str) -> None:
        """Another has told this failure, or it is over."""
        self._failures.pop(id, None)

    def clear(self) -> None:
        """Tell nothing any more."""
        self._failures.clear()

    def _probe(self, peer: Peer, now: float) -> None:
        if not peer.probes and not peer.must_answer:
            peer.is_suspected = True
            self._outbox.do(Suspected(peer.info))
        peer.is_reported = False
        peer.probes += 1
        self.ask(peer, now)
        self._peers.look_at(peer, now + (period_s(peer) if peer.must_answer else peer.info.keepalive_s) / pace.PROBES)

    def _spread(self, peer: Peer) -> float:
        """Return some seconds, lest all of many members do the same at the same moment."""
        return peer.info.keepalive_s * self._luck() * min(1.0, len(self._peers) / pace.CROWD)


def period_s(peer: Peer) -> float:
    """Return the seconds that a member has to answer, and between questions that others can cause."""
    return min(peer.info.keepalive_s, pace.ANSWER_S)
