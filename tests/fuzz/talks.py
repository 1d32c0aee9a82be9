"""An input as what clients of one worker do: who says what, when they read, how time passes, who leaves.

The first byte has the limits and how the bytes are cut. Then come operations: a byte that says what and who, and what
that needs.

    0, 1    a frame, or a message: its length in one byte, and its body
    2       bytes as they are: their number in one byte
    3       time passes, a byte
    4       its client reads no more than some bytes, a byte; 255 is all
    5       its client leaves, if the next byte is odd
    6       what it said last, again and again: a byte
    7       a long frame: some letters, 16 times a byte of them, where the body has a zero as its last byte
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from skywalker.limits import KIB, Limits
from tests.fuzz.draw import Draw
from tests.fuzz.memory import CLOCK, NEVER_S, Socket, Worker
from workers.doors import client as doors
from workers.doors.subscriber import Subscriber, Unsubscribing
from workers.mesh.link import Link

DAY_S: Final = 86_400.0

_PATIENT: Final[Mapping[str, Any]] = {"half_frame_s": NEVER_S, "idle_probe_s": NEVER_S, "unread_output_s": NEVER_S}
LIMITS: Final = (
    Limits(**_PATIENT),
    Limits(**_PATIENT, max_calls=4, waiting_bytes=4 * KIB, output_bytes=64, mesh_bytes=KIB, subscriber_buffer=KIB),
    Limits(),
)
"""Those that never matter; those that always do; and the usual ones, whose times may be over."""

ROOMY: Final = 0
IMPATIENT: Final = 2

PAUSES_S: Final = (0.0, 0.001, 0.01, 0.05, 0.3, 1.0, 5.0, 11.0, 31.0, 61.0, 3600.0)

MOST_OPERATIONS: Final = 64
MOST_AGAIN: Final = 16
MOST_PIECES: Final = 100

COLLECT_EVERY: Final = 200
"""Talks after which the collector looks for workers that have ended, of which each takes some pages."""

ENDS: Final = (doors.Client, Link, Subscriber, Unsubscribing)
"""What is gone as soon as it has ended, by reference counting: a worker hardly ever has the collector look."""


_talks = itertools.count()


class Client:
    """Somebody at the worker, and all that was said."""

    def __init__(self, socket: Socket, framed: Callable[[bytes], bytes]) -> None:
        self.socket = socket
        self.framed = framed
        self.sent = bytearray()
        self.last = b""

    def say(self, data: bytes, step: int) -> None:
        """Say something in pieces of so many bytes, 0 for all at once."""
        if self.socket.closed or self.socket.has_ended:
            return
        self.last = data
        self.sent += data
        step = max(step, len(data) // MOST_PIECES + 1) if step else len(data) or 1
        self.socket.say(data[at : at + step] for at in range(0, len(data), step))


class Talk:
    """What one input says, and how it ends."""

    def __init__(self, data: bytes, *, cut: bool) -> None:
        """`cut` has the bytes arrive in pieces."""
        self.draw = Draw(data)
        settings = self.draw.byte()
        self.limits = settings % len(LIMITS)
        self.step = max(1, settings // len(LIMITS) % 16) if cut else 0
        CLOCK.begin()
        if next(_talks) % COLLECT_EVERY == 0:
            gc.collect()  # a worker refers to itself, and by itself the collector never comes to what is thawed
        gc.disable()
        gc.freeze()
        self.worker = self.make(LIMITS[self.limits])
        self.clients: list[Client] = []

    def make(self, limits: Limits) -> Worker:
        """Return the worker."""
        return Worker(limits)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return CLOCK.now - CLOCK.BEGIN

    @property
    def keeps_up(self) -> bool:
        """Whether all have read what there was for them: who has not is read later, some frames sooner or later."""
        return not any(client.socket.was_full for client in self.clients)

    def go(self, seconds: float = 0.0) -> None:
        """Have some time pass, and all come of it that does."""
        self.worker.go(seconds)

    def come(self, dialect: Any, framed: Callable[[bytes], bytes]) -> Client:
        """Have a client come in."""
        client = Client(self.worker.connect(dialect), framed)
        self.clients.append(client)
        return client

    def run(self) -> None:
        """Do what the input says."""
        for _ in range(MOST_OPERATIONS):
            if not self.draw:
                return
            what = self.draw.byte()
            self.do(what >> 5, self.clients[what % 32 % len(self.clients)])

    def do(self, operation: int, client: Client) -> None:
        """Do one thing."""
        draw, pause = self.draw, 0.0
        if operation <= 1:
            client.say(client.framed(draw.text()), self.step)
        elif operation == 2:
            client.say(draw.text(), self.step)
        elif operation == 3:
            pause = draw.one_of(PAUSES_S)
        elif operation == 4:
            room = draw.byte()
            client.socket.room = room if room < 255 else NEVER_S
        elif operation == 5:
            if draw.byte() & 1:
                client.socket.end()
        elif operation == 6:
            last = client.last
            client.say(last * (draw.byte() % MOST_AGAIN), self.step)
            client.last = last
        else:
            letters = bytes((draw.byte() * 16 % 256,)) * (16 * draw.byte())
            body = draw.text()
            client.say(client.framed(body.replace(b"\0", letters, 1)), self.step)
        self.go(pause)

    def calm(self, pauses_s: Sequence[float] = (0.1, 2.0, DAY_S + 1, 2.0)) -> None:
        """Have all read what there is, and all that waits come to its end."""
        for client in self.clients:
            client.socket.room = NEVER_S
        for pause_s in pauses_s:
            self.go(pause_s)

    def leave(self) -> None:
        """Have all go. Nothing is held for anybody then, and what has ended does not wait for the collector."""
        self.worker.close()
        held = self.worker.held()
        assert not held, held
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        circular = [each for each in gc.garbage if isinstance(each, ENDS)]
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
        assert not circular, f"something refers to itself: {circular}"
        self.worker.hub.core.shut()
