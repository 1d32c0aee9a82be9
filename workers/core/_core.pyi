"""The core as Python sees it, and the parts of it by themselves, which tests compare with others."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from skywalker.census import Census
from skywalker.limits import Limits

KIND_SEND: Final[int]
KIND_RECV: Final[int]
KIND_TAKE: Final[int]

class Rare(Protocol):
    """Who does what the core leaves to others. Connections go by their handles; `why` are numbers of core.h."""

    def unusual(self, connection: int, body: bytes) -> None:
        """Deal with a frame that asks for something else, or is not good."""

    def failed(
        self, connection: int, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int
    ) -> None:
        """Push the error with which a call ends: one of KIND_SEND, KIND_RECV and KIND_TAKE."""

    def half_is_old(self, connection: int) -> None:
        """Half a frame has waited too long for its rest."""

    def closed(self, connection: int, why: int, error: int) -> None:
        """It is closed, with an errno where there is one."""

    def sampled(self, topic: bytes) -> int:
        """A call was answered; return how many are not told of next."""

class Simulated(Protocol):
    """A machine that is none: in place of the kernel. `what` comes back with the events of a descriptor."""

    def clock(self) -> float: ...
    def recv(self, fd: int, size: int) -> bytes: ...
    def send(self, fd: int, data: bytes) -> int: ...
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
    """The turn that is on, as Python has a part in it: its own connections and links; a subclass says what of them.

    Times are seconds on the machine's clock.
    """

    core: Core
    """That has the turns."""
    now: float
    """What it is for all that is done now."""
    began: float
    """Since when the time counts that others wait for."""

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

    def has_more(self) -> bool:
        """Whether somebody goes on in the next turn, which must not wait for anything else."""

    def go_on(self) -> None:
        """Have those go on, as many as there is time for."""

    def attend_at(self, place: int) -> bool:
        """Do what was put off to a place of core.h in the end of the turn; return whether there was something.

        What was put off to the first one is done after each event, too.
        """

class Core:
    """Connections and their calls, on local topics; descriptors of others, and the turns in which all that happens.

    Whatever is raised by what it calls is raised by what called it, and nothing more is called in that turn.
    """

    rare: Rare

    def follow(self, tokens: list[int], owners: list[int], here: int) -> None:
        """Leave calls on topics of other owners than `here` to Rare.unusual(). Tokens are sorted; none is all here."""

    def shut(self) -> None:
        """Close all connections. Nothing is to be asked of it afterwards."""

    def connect(self, fd: int) -> int:
        """Take over a descriptor that does not block; return the handle of its connection."""

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

    def begin(self, now: float) -> None:
        """Have the first part of a turn: what is due ends."""

    def settle(self) -> None:
        """Have the last part of one: what all brought about is written. It may be so in the middle of one."""

    def push(self, handle: int, data: bytes) -> None:
        """Write bytes at the end of the turn."""

    def finish(self, handle: int) -> None:
        """Close once what was pushed is written; nothing more is heard."""

    def close(self, handle: int) -> None:
        """Close at once."""

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

    def subscribe(self, handle: int, id: bytes, topic: bytes) -> tuple[int, int]:
        """Count a subscription; return its row, or 0 and why not. It is given nothing before it stands."""

    def stand(self, subscription: int) -> None:
        """Give it all that waits, and all that comes."""

    def unsubscribe(self, handle: int, id: bytes) -> bool:
        """End the subscription of this id, if there is one."""

    def census(self, topic: bytes) -> Census:
        """Count who is at a topic, as the junction does."""

    def knows_errors(self, handle: int) -> bool: ...
    def has_called(self, handle: int) -> bool: ...
    def unwritten(self, handle: int) -> bytes: ...
    @property
    def has_more(self) -> bool:
        """Whether somebody goes on in the next turn."""

    @property
    def holds(self) -> dict[str, int]:
        """The size of everything that grows."""

class Judging(Protocol):
    """Who decides at a Table what becomes of calls, as judges of table.h do."""

    def give(self, listener: int, send: int) -> bool: ...
    def met(self, send: int) -> None: ...
    def missed(self, send: int) -> None: ...

class Table:
    """The junction and the timers by themselves: skywalker.junction and skywalker.deadlines, of rows by number."""

    def __init__(self, judging: Judging | None, random: bytes) -> None: ...
    def new(self, number: int, topic: bytes, since: float, group: bytes | None = None, audience: int = 0) -> int: ...
    def free(self, number: int) -> None: ...
    def send(self, number: int) -> bool: ...
    def publish(self, number: int) -> None: ...
    def pass_on(self, number: int, subscribers: list[int]) -> bool: ...
    def listen(self, number: int) -> bool: ...
    def wait(self, number: int) -> None: ...
    def withdraw(self, number: int) -> bool: ...
    def given(self, listener: int, send: int) -> None: ...
    def decided(self, listener: int) -> int: ...
    def confirm(self, send: int) -> None: ...
    def lost(self, send: int) -> None: ...
    def resume(self, send: int) -> None: ...
    def subscribe(self, number: int) -> None: ...
    def unsubscribe(self, number: int) -> None: ...
    def resize(self, number: int, audience: int) -> None: ...
    def is_answered(self, number: int) -> bool: ...
    def answer(self, number: int) -> None: ...
    def offers(self, number: int) -> int: ...
    def line(self, topic: bytes) -> list[int]: ...
    def census(self, topic: bytes) -> Census: ...
    def groups(self, topic: bytes) -> list[list[int]]: ...
    def subscribers(self, topic: bytes) -> tuple[list[int], int]: ...
    @property
    def used(self) -> tuple[int, int]:
        """Rows, and spots that somebody is at."""

    def add_timer(self, number: int, at: float) -> None: ...
    def remove_timer(self, number: int) -> None: ...
    def due(self, now: float) -> list[int]: ...
    def wait_for_timers(self, now: float) -> float | None: ...

def parse(body: bytes) -> list[bytes] | tuple[str, bytes, bytes]:
    """Return the elements of a frame's body, or why it is none, with its first two elements."""

def canonical(data: bytes) -> bool: ...
def value(data: bytes) -> bool: ...
def timeout(data: bytes) -> int: ...
def reserved(data: bytes) -> bool: ...
def token(topic: bytes) -> int: ...
def owner_of(tokens: list[int], owners: list[int], wanted: int) -> int: ...
def life() -> list[list[int]]:
    """Return by state and event where a call goes, 255 for nowhere."""
