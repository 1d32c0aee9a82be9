"""What clients of the MessagePack dialect are owed, by what they said and heard."""

from __future__ import annotations

from collections import Counter
from typing import Any

from skywalker.wire import junction as wire
from skywalker.wire.frames import split
from tests.fuzz.talks import Client
from workers.doors.junction.methods import echo

PUSHED = (wire.MESSAGE, wire.RING)


def check_answers(client: Client, *open: bytes) -> None:
    """See that each frame of a client has its answer, and only one; of a client that was turned away, none too many.

    Those methods may be `open` for ever which wait for a worker that says nothing.
    """
    if wire.PEER in client.socket.heard:
        return  # it may have gone on as a node does
    asked: Counter[tuple[bytes, bytes]] = Counter(
        echo(frame) for frame in split(bytes(client.sent))[0] if not is_silent(frame)
    )
    whole: Any = split(bytes(client.socket.heard))
    heard, rest = whole
    assert not rest or client.socket.closed
    answered: Counter[tuple[bytes, bytes]] = Counter((frame[0], frame[1]) for frame in heard)
    # What is pushed has the id of a subscription, and that of a ping has none.
    surplus = {key: count for key, count in (answered - asked).items() if not is_pushed(key)}
    assert not surplus, f"answers to nothing: {surplus}"
    if not (client.socket.closed or client.socket.has_ended):
        missing = {key: count for key, count in (asked - answered).items() if not is_pushed(key) and key[0] not in open}
        assert not missing, f"no answer to {missing}"


def frames_of(heard: bytes) -> list[str]:
    """Return what was heard, in no order: of one turn, values come before replies."""
    return sorted(map(repr, split(heard)[0]))


def is_silent(frame: Any) -> bool:
    """Whether nobody answers this frame."""
    method = wire.ACK if isinstance(frame, list) and echo(frame)[0] == wire.ACK else frame[0]
    return (method == wire.ACK and len(frame) == 2) or (
        isinstance(frame, list) and echo(frame)[0] == wire.PING and len(frame) == 3 and frame[1] == wire.NIL
    )


def is_pushed(key: tuple[bytes, bytes]) -> bool:
    """Whether a node may say this without being asked: also :error, when it turns somebody away."""
    method, id = key
    return method in PUSHED or (method in (wire.PING, wire.ERROR) and id == wire.NIL)


def check_values(clients: list[Client]) -> None:
    """See that whoever was told true was right, and nobody has got a value from nowhere."""
    if any(wire.PEER in client.sent for client in clients):
        return  # what a node has got nobody sees
    sent: set[bytes] = set()
    by_id: list[dict[bytes, set[bytes]]] = []
    said: set[bytes] = set()  # what a client named as its own word for a timeout
    for client in clients:
        by_id.append({})
        for frame in split(bytes(client.sent))[0]:
            if isinstance(frame, list) and len(frame) >= 5:
                method = echo(frame)[0]
                said.add(frame[3])
                if method == wire.SEND:
                    sent.add(frame[-1])
                    by_id[-1].setdefault(frame[1], set()).add(frame[-1])
    heard: list[list[Any]] = [split(bytes(client.socket.heard))[0] for client in clients]
    got = {
        frame[2] for frames in heard for frame in frames if frame[0] in (wire.RECV, wire.TAKE, wire.MESSAGE)
    }  # fmt: skip
    assert not {value for value in got - sent - said if not is_word(value)}
    for frames, values in zip(heard, by_id, strict=True):
        for frame in frames:
            if frame[0] == wire.SEND and frame[2] == wire.TRUE and wire.TRUE not in said:
                own = values[frame[1]]
                assert own & got, "nobody has it"


def is_word(value: bytes) -> bool:
    """Whether this is the node's own: that time is over, or an error."""
    return value == wire.TIMED_OUT or value[1:2] == b"E" or value[2:3] == b"E" or value[3:4] == b"E"
