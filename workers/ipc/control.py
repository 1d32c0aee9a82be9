"""The channel between the supervisor and one worker, or the agent: small messages, some with a descriptor.

    to a worker      Connect(slot, life) with a socket, Begin, Ring with a file, Inspect with a socket, Replaced, Drain,
                     Stop, Lend(slot, door) with a listener, Return(slot)
    from a worker    Ready, Heard(address), Idle, Ring without its file
    to the agent     Inspect(slot, pid) with a socket, Heard(address), Drain, Forget
    from the agent   Ring with a file, Left

It lives exactly as long as both ends: who reads an end, because the supervisor is gone, leaves.
"""

from __future__ import annotations

import errno
import json
import socket
from dataclasses import asdict, dataclass, field
from typing import Final, Protocol, get_args

from workers.engine.machine import Machine

ASKS_ONLY: Final = -1
"""In place of the slot of one that is being replaced: it owns nothing any more."""


@dataclass(frozen=True, slots=True)
class Connect:
    """A socket to the worker in `slot` comes with this; if that is one's own, to the successor.

    `life` is its name among all that ever were in this node, in hexadecimal digits.
    """

    slot: int
    life: str


@dataclass(frozen=True, slots=True)
class Begin:
    """These are all siblings for now: let clients in, once the others have said what they subscribe to."""


@dataclass(frozen=True, slots=True)
class Lend:
    """Accept at the listener that comes with this, too: it is that of a door of a slot which waits for a worker."""

    slot: int
    door: str


@dataclass(frozen=True, slots=True)
class Return:
    """Accept at the listeners of that slot no more: it has a worker."""

    slot: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A successor owns the topics from now on, and lets clients in; say Idle once none of them is left."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Accept nothing new, and say Idle when no call of a client waits any more."""

    outlived: list[str] = field(default_factory=list)
    """By the listeners of these doors: leave those in the queue who wait there."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Answer what still waits with `draining`, and end."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker serves; or, if it succeeds another, is ready to."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The worker drains, and none of its clients' calls waits any more."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The file that comes with this holds the snapshot to follow from now on.

    A worker that was sent one, and had no descriptor left for it, asks by this for the latest.
    """


@dataclass(frozen=True, slots=True)
class Heard:
    """A node said that it is at this address, "host:port"."""

    address: str


@dataclass(frozen=True, slots=True)
class Inspect:
    """Over the socket that comes with this, the agent asks the worker of that slot and pid what it holds."""

    slot: int
    pid: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Have the node registered no more, and end: the agent that comes next has it registered otherwise, if at all."""


@dataclass(frozen=True, slots=True)
class Left:
    """The node is announced nowhere any more."""


Message = (
    Connect | Begin | Lend | Return | Replaced | Drain | Stop | Ready | Idle | Ring | Heard | Inspect | Forget | Left
)
_TYPES: Final = {each.__name__: each for each in get_args(Message)}
_MAX_BYTES: Final = 4096

_NO_ROOM: Final = frozenset((errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS))
"""Of the last kind it is where more descriptors are on their way, be it to others, than this user may have open."""


class HasFileno(Protocol):
    """Something open."""

    def fileno(self) -> int:
        """Return its descriptor."""


class Channel:
    """One end. Neither side ever blocks on it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    @staticmethod
    def pair(machine: Machine) -> tuple[Channel, Channel]:
        """Return two connected ends."""
        a, b = machine.pair()
        return Channel(a), Channel(b)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other reads an end."""
        self._socket.close()

    def send(self, message: Message, passed: HasFileno | None = None) -> bool:
        """Send a message, and a copy of a descriptor. Returns False if there is no room for it.

        Usually the other end has not read for long; or the machine is short of memory or descriptors. One that is gone
        is not told, and need not be: its end says so too.
        """
        data = json.dumps([type(message).__name__, asdict(message)]).encode()
        if len(data) > _MAX_BYTES:
            raise ValueError(f"a message of {len(data)} bytes, the other end reads {_MAX_BYTES}")
        fds = [] if passed is None else [passed.fileno()]
        try:
            socket.send_fds(self._socket, [data], fds)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return False
        return True

    def receive(self) -> tuple[Message, int | None] | None:
        """Return the next message and the descriptor that came with it, which is the caller's from then on.

        Raises BlockingIOError if there is none now, and returns None once the other end is gone.
        """
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _MAX_BYTES, 1)
        except ConnectionResetError:
            # The other end died with words of ours unread. Its own are still here, and after them its end.
            return self.receive()
        if not data:
            return None
        assert len(fds) <= 1, "one was sent"
        name, fields = json.loads(data)
        return _TYPES[name](**fields), fds[0] if fds else None
