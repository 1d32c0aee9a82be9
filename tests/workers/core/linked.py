"""Cores with links among themselves: what Python has to do for these, of which today's mesh has the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from workers.doors.junction.rare import JunctionClient

from skywalker.limits import MAX_FRAME
from skywalker.ring import Ring, token_of
from skywalker.wire import pubsub, values
from tests.workers.core.clusters import Cluster, End, Layout, due_at
from tests.workers.core.worlds import New, Sealed, Settings, Wire, World
from workers.calls.interests import Interests, TopicInterest
from workers.doors.clients import Clients
from workers.doors.commons import Commons
from workers.doors.subscriber import Standing
from workers.mesh.siblings import ANSWER_S
from workers.mesh.succession import PATIENCE_S
from workers.stats.hands import Hands, cell_of

# Of workers.mesh.messages and workers.stats.hands, which keep them to themselves where they are compiled.
PUBLISH: Final = 6
CENSUS: Final = 8
OFFER: Final = 16
COUNTED: Final = 14
SETTLED: Final = 19
SUBSCRIBE: Final = 7
SUBSCRIBED: Final = 17
LAGGED: Final = 18
INQUIRE: Final = 29
HEAD: Final = 8
ENTRY: Final = 5
ROOM: Final = 4096


class Links(Clients):
    """What the core leaves to others of links, of one worker: what siblings.py and kin.py have to do."""

    def __init__(self, new: NewWorker, commons: Commons) -> None:
        super().__init__(commons, new.adopt)
        self._worker = new
        self.lives: dict[int, int] = {}  # by link
        self.dead: set[int] = set()
        self.by_owner: dict[int, int] = {}
        self.asked_about: set[int] = set()
        self.questions: dict[int, tuple[int, Callable[[], None]]] = {}  # where each was asked, and who is told
        self.tokens: dict[int, Callable[[], None]] = {}
        self.numbers = 0
        self.ways: dict[int, Way] = {}  # by link
        self.remotes: dict[int, dict[bytes, Remote]] = {}
        self.sealed: dict[int, Sealed] = {}  # by link

    def said(self, link: int, kind: int, number: int, topic: bytes | None, value: bytes | None, form: Any) -> None:
        if kind == COUNTED:
            asked = self.questions.pop(number, None)
            if asked is not None:
                asked[1]()
        elif kind == SETTLED:
            pass
        elif kind == SUBSCRIBE:
            assert topic is not None
            assert value is not None
            remotes = self.remotes.setdefault(link, {})
            remote = remotes.get(topic)
            if remote is None:
                remote = remotes[topic] = Remote(self._worker, link, topic, not self.lives.get(link))
            remote.ask(values.unpack(value))
        elif kind in (SUBSCRIBED, LAGGED):
            assert topic is not None
            interest = self.ways[link].asked.get(topic)
            if interest is not None and kind == SUBSCRIBED:
                interest.answered(self.ways[link])
            elif interest is not None:
                interest.cut_off()
        elif kind in (PUBLISH, OFFER):
            assert topic is not None
            plain = pubsub.bus_value(pubsub.inflate(form[pubsub.FORM :]))
            self._worker.core.hear(link, kind, number, topic, plain, form)
        elif kind == CENSUS:
            self._worker.core.say(link, COUNTED, number, value=b"\xc0")
        else:
            raise AssertionError(f"no test says {kind}")

    def link_receive(self, link: int, most: int) -> tuple[bytes, bool]:
        return self.sealed[link].recv(most), self.sealed[link].ended

    def link_transmit(self, link: int, data: bytes) -> tuple[int, int]:
        return self.sealed[link].send(data), self.sealed[link].begun

    def link_shut(self, link: int) -> None:
        self.sealed[link].shutdown(1)

    def stuck(self, link: int) -> None:
        for remote in self.remotes.get(link, {}).values():
            remote.cut_off()

    def early(self, link: int) -> None:
        raise AssertionError("all are open")

    def wanted(self, owner: int) -> None:
        pass

    def handed(self, life: int) -> list[int] | None:
        return self._worker.handed(life)

    def link_ended(self, link: int, why: str) -> None:
        self._worker.core_log.append(why)
        self.dead.add(link)
        if link in self.sealed:
            self.sealed[link].close()
        for remote in self.remotes.pop(link, {}).values():
            remote.leave()
            if self.lives.get(link):
                self._worker.interests.change(remote.topic, -remote.asked, None)
            remote.end()
        owner = self._worker.owner_of.get(link, -1)
        if self.by_owner.get(owner) == link:
            del self.by_owner[owner]
            self._worker.core.lead(owner, 0)
            self._worker.sources[owner].lost(self.ways[link])

    def lagged(self, interest: int) -> None:
        for remotes in self.remotes.values():
            for remote in remotes.values():
                if remote.row == interest:
                    remote.cut_off()

    def link_over(self, link: int) -> None:
        self.lives.pop(link, None)
        for number, (where, then) in [*self.questions.items()]:
            if where == link:
                del self.questions[number]
                then()
        way = self.ways.get(link)
        for interest in [*way.asked.values()] if way is not None else ():
            interest.lost(way)

    def ask_all(self, link: int) -> None:
        life, owner = self._worker.life_of[link], self._worker.owner_of[link]
        self.asked_about.add(owner)

        def told(is_sure: bool) -> None:
            self.asked_about.discard(owner)
            self._worker.core.release(link, is_sure)
            if owner in self.by_owner:
                self._worker.handed_over(owner, self.by_owner[owner])

        def asked(is_sure: bool) -> None:
            self.answer(life, lambda: told(is_sure))

        Round(self, [each for each in self.lives if each != link], life, asked)

    def ask(self, link: int, kind: int, then: Callable[[], None], topic: bytes | None = None, life: int = 0) -> None:
        """Ask something that is COUNTED once it is done, or over when the link is."""
        self.numbers += 1
        number = 0x4F << 56 | 1 << 55 | self.numbers
        self.questions[number] = link, then
        self._worker.core.say(link, kind, number, topic=topic, life=life)

    def answer(self, life: int, then: Callable[[], None]) -> None:
        self.numbers += 1
        self.tokens[self.numbers] = then
        self._worker.core.answer(life, self.numbers)

    def answered(self, token: int) -> None:
        self.tokens.pop(token)()


class Way:
    """Where values of the topics of one owner come from, as interests.py asks it; None in its place is here."""

    def __init__(self, worker: NewWorker, link: int) -> None:
        self._worker = worker
        self.link = link  # 0 for one that is not there
        self.waiting: dict[Any, None] = {}  # interests, in the order in which they asked
        self.asked: dict[bytes, Any] = {}

    def subscribe(self, interest: Any) -> None:
        if self.link:
            self.asked[interest.topic] = interest
            self._worker.core.say(self.link, SUBSCRIBE, topic=interest.topic, value=values.pack(interest.audience))
        elif interest.audience:
            self.waiting[interest] = None
        else:
            interest.lost(self)

    def unsubscribe(self, interest: Any) -> None:
        if self.link:
            self._worker.core.say(self.link, SUBSCRIBE, topic=interest.topic, value=values.pack(0))
        else:
            interest.lost(self)

    def forget_interest(self, interest: Any) -> None:
        self.waiting.pop(interest, None)
        if self.asked.get(interest.topic) is interest:
            del self.asked[interest.topic]


class Source:
    """An owner, as interests.py sees it."""

    def __init__(self, worker: NewWorker, is_here: bool) -> None:
        self.absent = Way(worker, 0)
        self.carrier: Way | None = None if is_here else self.absent

    def met(self, way: Way) -> None:
        self.carrier = way
        for interest in [*self.absent.waiting]:
            interest.lost(self.absent)

    def lost(self, way: Way) -> None:
        if self.carrier is way:
            self.carrier = self.absent


class FarInterest(TopicInterest):
    """One whose subscribers stand in the core also where values come over a link."""

    def stand(self, subscriber: Any) -> None:
        super().stand(subscriber)
        self._hear(subscriber)

    def _hear(self, subscriber: Any) -> None:
        if self._carrier is not None and self._carrier.link:  # type: ignore[attr-defined]  # it is a Way
            self._junction._core.hear_afar(subscriber.row)  # type: ignore[attr-defined]  # a Standing

    def _begin(self) -> None:
        for subscriber in self.subscribers():
            self._junction.unsubscribe(subscriber)
        super()._begin()
        for subscriber in self.subscribers():
            self._hear(subscriber)


class FarInterests(Interests):
    def change(self, topic: bytes, by: int, waiter: Any) -> None:
        if topic not in self._interests:
            self._interests[topic] = FarInterest(topic, self, self._junction)
        super().change(topic, by, waiter)


class Remote:
    """Those who subscribe to a topic at the other end of a link: remote_interests.py has what they are."""

    def __init__(self, worker: NewWorker, link: int, topic: bytes, is_abroad: bool) -> None:
        self._worker = worker
        self._link = link
        self._is_abroad = is_abroad
        self.topic = topic
        self.row = worker.core.interest(link, topic)
        self.asked = self.changes = 0
        self.stands = self.is_over = False

    def ask(self, count: int) -> None:
        by, self.asked = count - self.asked, count
        self.changes += 1
        if self._is_abroad:
            self.settle(count)
        else:
            change = SimpleNamespace(in_effect=lambda: self.settle(count))
            self._worker.interests.change(self.topic, by, change)

    def settle(self, count: int) -> None:
        core, remotes = self._worker.core, self._worker.rare.remotes
        if self._link in self._worker.rare.dead:
            return
        core.say(self._link, SUBSCRIBED, topic=self.topic)
        if self.is_over:
            return
        core.resize(self.row, count)
        self.changes -= 1
        if not count:
            self.leave()
            if not self.changes:
                del remotes[self._link][self.topic]
                self.end()
        elif not self.stands:
            self.stands = True
            if self._is_abroad:
                core.stand(self.row)
            else:
                self._worker.interests.stand(self)  # type: ignore[arg-type]

    def leave(self) -> None:
        self.stands = False
        if self._is_abroad:
            self._worker.core.stand_no_more(self.row)
        else:
            self._worker.interests.leave(self)  # type: ignore[arg-type]

    def cut_off(self) -> None:
        if self.stands:
            self.leave()
            self._worker.core.say(self._link, LAGGED, topic=self.topic)

    def end(self) -> None:
        self.is_over = True
        self._worker.core.end_interest(self.row)


class Round:
    """The same question to several siblings."""

    def __init__(self, rare: Links, links: list[int], life: int, over: Callable[[bool], None]) -> None:
        self._over: Callable[[bool], None] | None = over
        self._left = len(links)
        worker = rare._worker
        worker.ring_in(ANSWER_S, lambda: self._end(False))
        for link in links:
            rare.ask(link, INQUIRE, self.one_less, life=life)
        if not links:
            self._end(True)

    def one_less(self) -> None:
        self._left -= 1
        if not self._left:
            self._end(True)

    def _end(self, have_all: bool) -> None:
        over, self._over = self._over, None
        if over is not None:
            over(have_all)


class NewWorker(New):
    """One of several cores."""

    def __init__(self, seed: int, world: World, layout: Layout, at: int, hands: Hands, limits: Any) -> None:
        self.layout, self.at, self.hands = layout, at, hands
        self.core_log: list[str] = []
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        self.life_of: dict[int, int] = {}
        self.owner_of: dict[int, int] = {}
        self.abroad: dict[int, int] = {}  # links to other nodes, by descriptor
        super().__init__(seed + at, Settings(limits), world=world)
        self.hand = hands.hand(at)
        self.core.live(cell_of(self.hand.life), self.hand.memory, ROOM)
        tokens = sorted(layout.tokens)
        self.core.follow(tokens, [layout.tokens[token] for token in tokens], at)
        self.core.ways(len(layout.nodes))
        self.sources = [Source(self, other == at) for other in range(len(layout.nodes))]
        ring = Ring.of_tokens(layout.tokens)
        self.interests = FarInterests(
            Standing(self.core),  # type: ignore[arg-type]
            lambda topic: self.sources[ring.owner(token_of(topic))],  # type: ignore[arg-type, return-value]
        )
        self.clients.commons = dataclasses.replace(self.clients.commons, interests=self.interests)

    def make_clients(self, commons: Commons) -> Clients:
        self.rare = Links(self, commons)
        return self.rare

    def connect(self, fd: int, host: str = "", *, knows_errors: bool = False, acks: bool = False, **_: Any) -> None:
        client = self.clients.let_in(JunctionClient, fd, f"{host}:{fd}", host)
        assert isinstance(client, JunctionClient)
        client.knows_errors = knows_errors
        if knows_errors:
            self.core.greeted(client.handle, acks, MAX_FRAME)

    def handed(self, life: int) -> list[int] | None:
        for number in range(2 * self.hands._parts):
            cells = self.hands._hand(number)
            if cells[0] == life:
                if cells[1] > ROOM:
                    return None
                return [*cells[HEAD : HEAD + ENTRY * cells[1]]]
        return None

    def link(self, other: int, end: End, life: bytes) -> None:
        """Do as siblings.py does, or ask a worker of another node."""
        rare, core = self.rare, self.core
        siblings = self.layout.are_siblings(self.at, other)
        cell = cell_of(life) if siblings else 0
        old = rare.by_owner.get(other)
        if old is not None and siblings:
            core.read_to_the_end(old)
        if siblings:
            link = core.link(end.fd, cell, False, False, 0.03)
            rare.lives[link] = cell
        else:
            link = self.link_abroad(end, False)
        self.life_of[link], self.owner_of[link] = cell, other
        rare.by_owner[other] = link
        rare.ways[link] = Way(self, link)
        if old is None or old in rare.dead or not siblings:
            self.handed_over(other, link)
            return
        core.lead(other, 0)
        self.sources[other].lost(rare.ways[old])
        core.comes_before(old, link)
        self.ring_in(PATIENCE_S, lambda: core.retired(old))
        is_over = False

        def over() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self.handed_over(other, link)

        self.ring_in(PATIENCE_S, over)
        for interest in self.interests.all():
            interest.handed_over(rare.ways[old])  # type: ignore[arg-type]
        for interest in reversed(self.interests.all()):
            interest.ring_changed()
        for handle in reversed(self.handles()):
            core.reroute(handle)
        if old in rare.dead:
            over()
        else:
            rare.ask(old, CENSUS, over, topic=b"\xc0")

    def handed_over(self, owner: int, link: int) -> None:
        rare = self.rare
        if rare.by_owner.get(owner) == link and owner not in rare.asked_about:
            self.met(owner, link)

    def handles(self) -> list[int]:
        """Return those of connections, the oldest first."""
        handles = self.machine.under.handles
        return [handles[fd] for fd, wire_ in self.world.wires.items() if isinstance(wire_, Wire) and fd in handles]

    def ring_in(self, seconds: float, ring: Callable[[], None]) -> None:
        self.alarms.append((self.world.now + seconds, ring))

    def met(self, owner: int, link: int) -> None:
        """What waits for an owner goes there."""
        self.sources[owner].met(self.rare.ways[link])
        self.core.say(link, SETTLED)
        self.core.lead(owner, link)

    def serve(self, end: End) -> None:
        self.link_abroad(end, True)

    def link_abroad(self, end: End, asks_us: bool) -> int:
        layout = self.layout
        words = {"unwritten": layout.unwritten} if asks_us else {"heard": layout.heard}
        link = self.core.link(end.fd, 0, True, asks_us, 0.03, secure=layout.is_sealed, **words)
        self.abroad[end.fd] = link
        if layout.is_sealed:
            self.rare.sealed[link] = Sealed(end)  # type: ignore[arg-type]
        return link

    def finish(self, end: End) -> None:
        self.core.finish_link(self.abroad[end.fd])

    def is_idle(self, link: int) -> bool:
        way = self.rare.ways.get(link)
        return self.core.asks_nothing(link) and not (way is not None and way.asked)

    def states(self) -> list[tuple[object, ...]]:
        core = self.core
        return [
            (fd, self.layout.count(core.unsent(link)), core.is_decided(link), self.is_idle(link), core.parts(link))
            for fd, link in self.abroad.items()
            if link not in self.rare.dead
        ]

    def ring_alarms(self) -> None:
        due = [ring for at, ring in self.alarms if due_at(at) <= self.world.now]
        self.alarms = [(at, ring) for at, ring in self.alarms if due_at(at) > self.world.now]
        for ring in due:
            ring()

    def one_turn(self) -> bool:
        self.ring_alarms()
        return bool(self.loop.turn(patient=False) or self.core.has_more)


def new_cluster(layout: Layout, limits: Any, seed: int) -> Cluster:
    return Cluster(layout, lambda world, at, hands: NewWorker(seed, world, layout, at, hands, limits))
