"""Clients of the MessagePack dialect at one worker.

Every frame is answered once and no more, with the id that it had, or its call waits, and is answered in a day; but for
those that nobody answers, an :ack and the answer to a :ping. A send is told true only if somebody has its value, and
nobody has a value that nobody sent. However the bytes are cut, the answers are the same, if they are read. Once all are
gone, nothing is held. The worker finds no mistake of its own.
"""

from __future__ import annotations

from skywalker.wire import junction as wire
from tests.fuzz.answers import check_answers, check_values, frames_of
from tests.fuzz.talks import LIMITS, ROOMY, Talk
from tests.wire.streams import framed
from workers.doors.junction.client import JunctionClient

CLIENTS = 3


def check_input(data: bytes) -> object:
    """Hold the invariant for what three clients do."""
    (whole, all_read), (pieces, all_read_those) = (play(data, cut=cut) for cut in (False, True))
    # Of what comes after a :peer, a part may be there already, and that is refused.
    roomy = data[:1] and data[0] % len(LIMITS) == ROOMY
    if roomy and all_read and all_read_those and not any(wire.PEER in heard for heard in whole):
        assert [*map(frames_of, whole)] == [*map(frames_of, pieces)]
    return whole


def play(data: bytes, *, cut: bool) -> tuple[list[bytes], bool]:
    """Return what each client has heard, and whether all read what there was for them."""
    talk = Talk(data, cut=cut)
    for _ in range(CLIENTS):
        talk.come(JunctionClient, framed)
    talk.run()
    talk.calm()
    # One may have gone on as a node does.
    if not any(wire.PEER in client.sent for client in talk.clients):
        for client in talk.clients:
            check_answers(client)
        check_values(talk.clients)
    talk.leave()
    return [bytes(client.socket.heard) for client in talk.clients], talk.keeps_up
