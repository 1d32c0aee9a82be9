"""Two workers of one node, and the link between them, which carries what clients of both do and ends at any time.

Whichever worker a client is at: each of its frames is answered once and no more, or its call waits and is answered in
a day. A send is told true only if somebody has its value, and nobody has a value that nobody sent. Once all are gone,
nothing is held. The workers find no mistake of their own.

Two more clients speak pub/sub, and have an ack for each message, in order. Clients alternate between the workers. The
link may end, and then there is another one.
"""

from __future__ import annotations

from typing import Any

from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member
from skywalker.wire import junction as wire
from tests.fuzz.answers import check_answers, check_values
from tests.fuzz.fuzz_pubsub import check_heard, payloads_heard, published_by
from tests.fuzz.memory import MOST_EVENTS, Socket, Worker
from tests.fuzz.talks import Talk
from tests.wire.streams import framed
from workers.doors.junction.dialogue import Dialogue
from workers.doors.pubsub import PubSub

NODE = Member("id", "name", Address("127.0.0.1", 3443), 2, False, (-(2**62), 0, 2**61, 2**62))
CLIENTS = 3


def check_input(data: bytes) -> object:
    """Hold the invariant for what the clients of both do."""
    if not data:
        return None
    return [play(data, cut=cut) for cut in (False, True)]


def play(data: bytes, *, cut: bool) -> object:
    """Return what each client has heard."""
    talk = Pair(data, cut=cut)
    talk.link()
    for n in range(CLIENTS):
        talk.come(Dialogue, framed, slot=n % 2)
    for slot in range(NODE.workers):
        talk.come(PubSub, lambda body: body, slot=slot)
    talk.run()
    talk.calm()
    callers, publishers = talk.clients[:CLIENTS], talk.clients[CLIENTS:]
    for client in callers:
        check_answers(client)
    published = published_by(publishers)
    check_values(callers, published, payloads_heard(publishers))
    if not any(wire.PEER in client.sent for client in callers):
        for client in publishers:
            check_heard(client, published, b"".join(bytes(caller.sent) for caller in callers))
    talk.leave()
    return [bytes(client.socket.heard) for client in talk.clients]


class End(Socket):
    """Our end of a link: what is written arrives at the other as the packet that it was."""

    other: End

    def send(self, data: bytes) -> int:
        if self.closed or self.other.closed:
            raise BrokenPipeError(32, "Broken pipe")
        if not self.room:
            raise BlockingIOError
        self.other.said.append(data)
        return len(data)

    def close(self) -> None:
        self.closed = self.other.has_ended = True


class Pair(Talk):
    """Both workers."""

    def make(self, limits: Limits) -> list[Worker]:
        return [Worker(limits, NODE, slot) for slot in range(NODE.workers)]

    def link(self) -> None:
        """Have another link between them."""
        ends = [worker.socket(End) for worker in self.workers]
        ends[0].other, ends[1].other = ends[1], ends[0]
        for slot, end in enumerate(ends):
            self.workers[slot].core.siblings.connect(1 - slot, end, self.workers[1 - slot].core.turn.hand.life)
        self.go()

    def do(self, operation: int, client: Any) -> None:
        if operation == 5 and self.draw.byte() & 1 == 0:
            for link in self.worker.core.siblings.all():
                link.close("the worker is dead")
            self.go()
            self.link()
            return
        super().do(operation, client)

    def go(self, seconds: float = 0.0) -> None:
        self.worker.go(seconds)
        for _ in range(MOST_EVENTS):
            busy = [worker.is_busy() for worker in self.workers]
            if not any(busy):
                return
        raise AssertionError("they go round in circles")
