"""The core as Python sees it: Core, the Moment that it is made by, and what it asks of Python, Rare and Linking."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from skywalker.census import Census
from skywalker.limits import Limits

KIND_SEND: Final[int]
KIND_RECV: Final[int]
KIND_TAKE: Final[int]

SAFEGUARDS: Final[Mapping[str, int]]
"""What keeps a promise in C and can be switched off: the names of those in base.h."""

def without(*names: str) -> None:
    """Switch off these, and none else, to see that somebody notices. Raises RuntimeError in a release."""

class Rare(Protocol):
    """Who does what the core leaves to others. Connections go by their handles; `why` are numbers of core.h."""

    def vet(self, handle: int, body: bytes) -> int:
        """Return the verdict on a frame of one that is vetted, or of anybody while the core is not open."""

    def unusual(self, handle: int, body: bytes) -> None:
        """Deal with a frame that asks for something else, or is not good, or that it may not be known to be allowed."""

    def failed(
        self, handle: int, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int
    ) -> None:
        """Push the error with which a call ends, or a message that is too long."""

    def half_begun(self, handle: int, half: bytes, is_first: bool) -> None:
        """Look at half a frame: the first that is said and no array, or whatever it is of one that is vetted."""

    def half_is_old(self, handle: int) -> None:
        """Half a frame has waited too long for its rest."""

    def is_through(self, handle: int) -> None:
        """It may be closed: it has called, knows no errors, and nothing that it asked waits, while the core drains.

        Or it is a publisher that has said its last, and all is acked, or that goes on while this worker leaves.
        """

    def receive(self, handle: int, most: int) -> tuple[bytes, bool]:
        """Read one that is secure; return whether it has ended as well. Raises OSError."""

    def transmit(self, handle: int, data: bytes) -> tuple[int, int]:
        """Write one that is secure; return how much is written, and how much more is on its way. Raises OSError."""

    def shut(self, handle: int) -> None:
        """Say that nothing more comes from here, to one that is secure."""

    def closed(self, handle: int, why: int, error: int) -> None:
        """It is closed, with an errno where there is one. Of one that is secure the descriptor is still open.

        One that has MOVED is another worker's now, with its descriptor and all that waited on it.
        """

    def may_move(self, handle: int) -> bytes | None:
        """Return what the worker of its topics has to know of it, for arriving() there; None to have it stay.

        It may still stay afterwards, as may_go() tells.
        """

    def arriving(self, link: int, facts: bytes, calls: int, has_room: bool) -> int:
        """Make a connection of that one, which comes over a link with so many calls; return its handle, 0 to refuse it.

        That is to be where its descriptor has no room.

        The handle is of connect(-1). Its descriptor comes later: until then nothing is read or written.
        """

    def arrived(self, handle: int) -> None:
        """Its descriptor is here. One that is lost on the way is closed instead."""

    def may_go(self, handle: int, goes: bool) -> None:
        """The other worker has said whether it takes it."""

    def sampled(self, topic: bytes) -> int:
        """A call was answered; return how many are not told of next."""

    def named(self, token: int, topic: bytes) -> None:
        """The topic of a token is on record, perhaps for the first time."""

    def recorded(self, records: int) -> None:
        """The page has so many records: one, or as many as it has room for."""

class Linking(Protocol):
    """Who does what the core leaves to others of links, by their handles. Lives and numbers are cells of hands.py."""

    def said(
        self, link: int, kind: int, number: int, topic: bytes | None, value: bytes | None, form: bytes | None, life: int
    ) -> None:
        """Deal with a message that is not the core's: who subscribes, counts, settles, visits; or a value in a form."""

    def early(self, link: int) -> None:
        """A link is paused: it has said more than what it subscribes to while this worker opens."""

    def link_receive(self, link: int, most: int) -> tuple[bytes, bool]:
        """Read one that is secure; return whether it has ended as well. Raises OSError."""

    def link_transmit(self, link: int, data: bytes) -> tuple[int, int]:
        """Write one that is secure; return how much is written, and how much more is on its way. Raises OSError."""

    def link_shut(self, link: int) -> None:
        """Say that nothing more comes from here, to one that is secure."""

    def stuck(self, link: int) -> None:
        """It has been too far behind for too long: have all who subscribe there leave, and their worker know.

        What was published meanwhile goes on without them.
        """

    def link_ended(self, link: int, why: str) -> None:
        """It has ended: what it asked of us is given up, and nothing leads there any more.

        Of one that is secure the descriptor is still open, and all that came was read.
        """

    def link_over(self, link: int) -> None:
        """And what we asked has gone elsewhere, but for sends that ask_all() was called for."""

    def ask_all(self, link: int) -> None:
        """A sibling is dead, with sends of ours: have all others tell what they know, answer(), and then release()."""

    def handed(self, life: int) -> Iterable[int] | None:
        """Return the entries of what a dead worker was handing out, five cells each; None if that is not known."""

    def wanted(self, owner: int) -> None:
        """Something waits for an owner that is not there."""

    def lagged(self, interest: int) -> None:
        """Values for it were dropped: have it leave, and its worker know."""

    def answered(self, token: int) -> None:
        """What answer() was called for is told."""

class Simulated(Protocol):
    """A machine that is none: in place of the kernel. `what` comes back with the events of a descriptor."""

    def clock(self) -> float: ...
    def recv(self, fd: int, size: int) -> bytes: ...
    def send(self, fd: int, data: bytes) -> int: ...
    def recv_passed(self, fd: int, size: int) -> tuple[bytes, int]:
        """Read a packet of a sibling's, and the descriptor that was passed with it; -1 for none."""

    def send_passing(self, fd: int, data: bytes, passed: int) -> int:
        """Send a packet to a sibling, and pass a descriptor with it, which this worker still has then."""

    def reserve(self) -> bool:
        """Keep room for a descriptor that will be passed, which takes it; return False if there is none."""

    def release(self) -> None:
        """Need that no more."""

    def shut(self, fd: int) -> None: ...
    def close(self, fd: int) -> None: ...
    def watch(self, fd: int, mask: int, what: int) -> None: ...
    def forget(self, fd: int) -> None: ...
    def wait(self, seconds: float | None) -> Iterable[tuple[int, int]]: ...

class Handler(Protocol):
    """Is told that its descriptor is ready. Events may be stale: a read or write may still find nothing to do."""

    def ready(self, events: int) -> None:
        """Deal with the events, a mask of epoll's."""

class Expiring(Protocol):
    """Has an alarm set."""

    def expired(self) -> None:
        """Its time has come: it is set no more."""

class Moment:
    """The turn that is on, as Python has a part in it: alarms, and who goes on in the next one.

    Times are seconds on the machine's clock.
    """

    core: Core
    """That has the turns."""
    now: float
    """What it is for all that is done now."""
    began: float
    """Since when the time counts that others wait for."""
    resting: Any
    """Who goes on in a turn to come in any case, None if nobody does."""
    rests_until: float
    """When that is to be."""

    def __init__(
        self,
        rare: Rare | None,
        bounds: Limits,
        memory: memoryview[int],
        layout: Mapping[str, int],
        random: bytes,
        simulated: Simulated | None = None,
    ) -> None:
        """Make a core. It counts in `memory`, where `layout` says. Of `random` it takes 16 bytes. Raises OSError."""

    def set_alarm(self, item: Expiring, at: float) -> int:
        """Have the item told once that time has come, at most 20 ms later; return a number for drop_alarm()."""

    def drop_alarm(self, alarm: int) -> None:
        """Have it not told; nothing happens if it has been, or if that is 0."""

    @property
    def alarms(self) -> int:
        """How many are set."""

    def go_on(self) -> None:
        """Have the one go on that is `resting`; called only when its time has come."""

class Core:
    """Connections, their calls, and links to other workers; descriptors of others; the turns in which all that happens.

    Whatever is raised by what it calls is raised by what called it. Nothing more is called until then, and what the
    core still does nobody sees: so one that is killed there, in a simulation, does no more.
    """

    rare: Rare
    linking: Linking

    def follow(self, tokens: list[int], shares: list[tuple[int, int]], owners: list[int], here: int) -> None:
        """Have calls go to whose topic it is. Tokens are sorted; with none, all is here.

        The arc of each token is shared by owners: which is the first, and how many they are, each `share` says. There
        are ways for all of them, and this worker is `here`.
        """

    def owner(self, topic: bytes) -> int:
        """Return who owns a topic."""

    @property
    def life(self) -> int:
        """Which one this worker is."""

    def live(self, life: int, memory: memoryview[int], room: int) -> None:
        """Be that life, and write what is being handed out into these cells, with room for so many."""

    def stand_as(self, standing: int) -> None:
        """Be in some of StandsAs from now on. One that opens no more hears its clients."""

    def ways(self, count: int) -> None:
        """Have ways to so many owners. What is for one to which no link leads waits; nothing does for this worker."""

    def lead(self, owner: int, link: int) -> None:
        """Have calls of an owner go over a link, and what waited for one; or wait, with 0."""

    def is_awaited(self, owner: int) -> bool:
        """Whether calls wait for an owner to be there."""

    def be_patient(self, owner: int, grace_s: float) -> None:
        """Give those so many seconds more for a last word, when their time is over."""

    def link(
        self,
        fd: int,
        life: int,
        abroad: bool,
        asks_us: bool,
        grace_s: float,
        *,
        both_ways: bool = False,
        secure: bool = False,
        unwritten: bytes = b"",
        heard: bytes = b"",
    ) -> int:
        """Return a new link over packets to a sibling, or over a stream to another node, where one side asks, or both.

        `unwritten` is written before anything is said. What was read from it before and is `heard` is the first that
        is, once the event is dealt with in which this is called. One that is `secure` is read, written and closed by
        Linking, by this handle; with no descriptor, -1, that is asked to once attend_link() says so.
        """

    def last_used(self, link: int) -> float:
        """Return when something was said over it last; inf while something of either end waits, here or there."""

    def close_link(self, link: int, why: bytes) -> None:
        """End it. Linking is told why, in UTF-8."""

    def finish_link(self, link: int) -> None:
        """Say nothing more, but that this is planned; the other end closes once it has heard all."""

    def pause_link(self, link: int) -> None:
        """Read no more of it for now."""

    def hear_link(self, link: int) -> None:
        """Read on, once the event is dealt with in which this is called."""

    def catch_up(self, link: int) -> None:
        """Hear now what has come already, since something is about to be decided; once a turn is enough."""

    def attend_link(self, link: int, via: int, read: int) -> None:
        """Read and write one without a descriptor, which passes over another link, or over none for now.

        So many bytes of all that it was to transmit the other end has `read`.
        That is done once the event is dealt with in which this is called.
        """

    def read_to_the_end(self, link: int) -> None:
        """Take in all that is there."""

    def say(
        self,
        link: int,
        kind: int,
        number: int = 0,
        topic: bytes | None = None,
        value: bytes | None = None,
        life: int = 0,
    ) -> None:
        """Say one of messages.py, with what its kind has."""

    def cut(self, life: int, number: int) -> None:
        """Say to the sibling of that life that its subscription of that number ends, as splits.py has it."""

    def hear(self, link: int, kind: int, number: int, topic: bytes, value: bytes, form: bytes) -> None:
        """Hear a value that came compressed, in its form. If that makes no sense the link is closed."""

    def answer(self, life: int, token: int) -> None:
        """Hear the last of a dead worker, settle all that it offered, and then call Linking.answered()."""

    def release(self, link: int, is_sure: bool) -> None:
        """Have the sends go on that wait at a dead worker, in doubt unless it `is_sure` that all is known."""

    def comes_before(self, link: int, heir: int) -> None:
        """Hear nothing of the heir before the last that the first hands out."""

    def retired(self, link: int) -> None:
        """That was the last."""

    def interest(self, link: int, topic: bytes) -> int:
        """Return a row for all who subscribe to a topic there; it stands as other subscriptions do."""

    def resize(self, interest: int, audience: int) -> None:
        """It is for so many."""

    def end_interest(self, interest: int) -> None:
        """It is gone."""

    def hear_afar(self, subscription: int) -> None:
        """Give a subscription what comes over links, and nothing of what meets here, until it stands no more."""

    def reroute(self, handle: int) -> None:
        """Have calls of a client that wait elsewhere than they should go there."""

    def unsent(self, link: int) -> int:
        """Bytes that wait to be written."""

    def parts(self, link: int) -> bool:
        """Whether the other end has said that it goes, as is planned; known until link_over()."""

    def asks_nothing(self, link: int) -> bool:
        """Whether no call of ours waits there, and every value that it gave has its outcome; interests do not count."""

    def is_decided(self, link: int) -> bool:
        """Whether every value that was given to who listens there, or came from there, has its outcome.

        So has what was published there once it is in effect.
        """

    def shut(self) -> None:
        """Close all connections. Nothing is to be asked of it afterwards."""

    def connect(self, fd: int, came_by: int = ..., secure: bool = False) -> int:
        """Take over a descriptor that does not block; return the handle of its connection.

        It came by one of the doors of record.py. One that is `secure` is read, written and closed by Rare. With -1 it
        is one that is arriving().
        """

    def draw(self, handle: int, link: int) -> None:
        """Have it move over this link to a sibling at the end of the turn, if it can, as if its calls went there."""

    def draw_after(self, calls: int, least: int, seconds: float, rest_s: float) -> None:
        """Have connections be drawn by so many calls more to a sibling than elsewhere, or by `least` for so long.

        They stay for `rest_s` then, which doubles with each move.
        """

    def finds_awake(self, handle: int, life: int) -> bool:
        """Whether the sibling of that life does not hang, as far as is known, and a connection could go.

        Where that is not known the sibling is asked, and may_move() once more when it has answered.
        """

    def moves(self, handle: int) -> bool:
        """Whether it is about to leave for another worker, or to come from one."""

    @property
    def moving(self) -> int:
        """How many are."""

    def watch(self, fd: int, handler: Handler, mask: int) -> None:
        """Have a handler called whenever one of these events of a descriptor holds."""

    def change(self, fd: int, mask: int) -> None:
        """Have it called for others."""

    def forget(self, fd: int) -> None:
        """Have it called no more: the descriptor is about to be closed."""

    def wait(self) -> float | None:
        """Return the seconds until there is a turn to do, whatever comes; None if that depends on others."""

    def turn(self, most: float = -1.0) -> int:
        """Wait at most so many seconds, below 0 for ever, and have a turn; return how many were ready."""

    def turns(self) -> None:
        """Have one turn after another until nothing was ready, or something of Python's had to do with it.

        In between, Python does nothing, which saves as much time as a call takes. On a machine of Python's it is one.
        """

    def begin(self, now: float) -> None:
        """Have the first part of a turn: what is due ends."""

    def settle(self) -> None:
        """Have the last part of one: what all brought about is written. It may be so in the middle of one."""

    def drain(self) -> None:
        """Tell who is through, now that it is REFUSING."""

    def leave(self) -> None:
        """Ask back what waits at other workers, now that it is LEAVING."""

    def read(self, handle: int) -> None:
        """Read it now: it may have spoken already, of which nothing will tell."""

    def push(self, handle: int, data: bytes) -> None:
        """Write bytes at the end of the turn."""

    def finish(self, handle: int) -> None:
        """Close once what was pushed is written; nothing more is heard."""

    def close(self, handle: int) -> None:
        """Close at once."""

    def detach(self, handle: int) -> tuple[int, bytes]:
        """Give a descriptor away, and what is still to be written to it. It has no calls."""

    def vet(self, handle: int, wanted: bool) -> None:
        """Ask Rare about each of its frames, or no more."""

    def probe(self, handle: int) -> None:
        """See whether it lives when it says nothing and waits for something."""

    def pause(self, handle: int, seconds: float) -> None:
        """Do no more of what it says for so long."""

    def resume(self, handle: int) -> None:
        """Go on with one whose frame had to wait."""

    def fail_all(self, handle: int) -> None:
        """Do what it has said, and fail all of it that waits, since this worker goes away."""

    def account(self, most: int) -> int:
        """Return a new account, of which so many calls may wait; 0 for any number."""

    def enter(self, handle: int, account: int) -> None:
        """It is that account's from now on; 0 is nobody's."""

    def in_flight(self, account: int) -> int:
        """Return how many calls of an account wait, with its subscriptions."""

    def grant(self, account: int, what: int, topic: bytes) -> None:
        """It may do one of the actions of rights.h to a topic: do not ask again."""

    def greeted(self, handle: int, acks: bool, max_reply: int) -> None:
        """Its client knows errors, and acknowledges values if it `acks`."""

    def issue(
        self,
        handle: int,
        what: int,
        id: bytes,
        seconds: float,
        timed_out: bytes | None,
        topic: bytes,
        value: bytes | None,
        group: bytes | None,
    ) -> None:
        """Do a call whose frame the core did not take: canonical topic and group, and an id of at most 32 bytes."""

    def will(self, handle: int, id: bytes, seconds: float, topic: bytes, testament: bytes) -> int:
        """Publish that value if the connection is lost within so many seconds; return why not, or 0."""

    def cancel(self, handle: int, by: bytes, id: bytes) -> None:
        """Do a :cancel of that id by a call of another."""

    def acknowledge(self, handle: int, id: bytes) -> None:
        """Do an :ack."""

    def publish(self, handle: int, topic: bytes, value: bytes, form: bytes) -> None:
        """Have a client of pub/sub publish, and be acked for it: with hint and flags, and the payload if compressed."""

    def awaits(self, handle: int) -> int:
        """A change of its subscriptions is to be acked, behind all that was asked before; return its place."""

    def done(self, handle: int, place: int) -> None:
        """That change is in effect."""

    def over(self, handle: int) -> None:
        """Hear nothing more; once all is acked Rare.is_through() is called."""

    def hold_back(self) -> None:
        """Publish nothing more of any connection before all that it has is acked."""

    def reroute_publications(self) -> None:
        """Have those that wait elsewhere go where they belong."""

    @property
    def orphans(self) -> int:
        """Publications that are not in effect, of connections that are gone."""

    def type(self, subscription: int, typed: bool) -> None:
        """Have a subscription of pub/sub be told hints and flags, or not."""

    def subscribe(self, handle: int, id: bytes, topic: bytes) -> tuple[int, int]:
        """Count a subscription; return its row, or 0 and why not. It is given nothing before it stands."""

    def stand(self, subscription: int) -> None:
        """Give it all that waits, and all that comes."""

    def stand_no_more(self, subscription: int) -> None:
        """Give it nothing more."""

    def unsubscribe(self, subscription: int) -> None:
        """Count it no more; it is still given what comes."""

    def end(self, subscription: int) -> None:
        """Have no such row any more."""

    def record(self, every: int, dice: int) -> None:
        """Record one of so many calls, on average, by luck that begins with this 32-bit number."""

    def page(self, page: bytearray, room: int) -> None:
        """Record into this page from now on, which has room for so many records."""

    @property
    def recorded(self) -> int:
        """How many records are in it."""

    def tell_next(self, gap: int) -> None:
        """Have Rare.sampled() told of a call after so many."""

    def held(self) -> tuple[int, int]:
        """Return how many calls wait, and the bytes that are held."""

    @property
    def freed(self) -> int:
        """How many bytes are held less than at most, since trimmed()."""

    def trimmed(self) -> None:
        """What is free was given back."""

    @property
    def topic_count(self) -> int:
        """How many topics of this owner somebody is at."""

    def topics(self, most: int) -> list[tuple[float, bytes]]:
        """Return since when who is there for longest is there, and the topic, of so many topics at most."""

    def choked(self) -> list[tuple[int, int]]:
        """Return how much is unread, and the handle, of those that do not read as fast as they are written to."""

    @property
    def has_silent(self) -> bool:
        """Whether somebody who came in by the junction's door has said nothing at all so far."""

    def counts(self, handle: int) -> tuple[int, int, int]:
        """Return how many calls of it wait, how many subscriptions it has, and how much it has not read if choked."""

    def census(self, topic: bytes) -> Census:
        """Count who is at a topic, as the junction does."""

    def has_called(self, handle: int) -> bool: ...
    def is_closed(self, handle: int) -> bool: ...
    def is_gone(self, handle: int) -> bool:
        """Whether it is closed, or has its last words written."""

    def is_idle(self, handle: int) -> bool:
        """Whether no call is under way, and nothing is half read or half written."""

    def is_owed(self, handle: int) -> bool:
        """Whether it is to acknowledge something, has said what is not done yet, or calls what waits elsewhere.

        So is one that goes to a sibling, or comes from one: its calls may be that one's already.
        """

    def waits(self, handle: int, id: bytes) -> bool:
        """Whether a call of that id waits, and was not cancelled yet."""

    def fd(self, handle: int) -> int: ...
    @property
    def has_more(self) -> bool:
        """Whether somebody goes on in the next turn."""

    @property
    def served_at(self) -> float:
        """When a client or another worker was last heard, or written to, because that was possible."""

    @property
    def holds(self) -> dict[str, int]:
        """The size of everything that grows."""
