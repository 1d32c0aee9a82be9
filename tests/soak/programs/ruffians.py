"""Who never reads, stops in the middle, talks rubbish, hangs up with a reset, or hangs about."""

from __future__ import annotations

import contextlib
import random
import socket
import zlib
from collections.abc import Callable
from typing import Any, Final

from skywalker.wire import pubsub
from tests.soak.programs.shift import Shift
from tests.soak.stage import RUFFIAN, Place
from tests.workers.wire_client import RST_ON_CLOSE, call, packed, raw_call

CROWD: Final = 60
"""Connections that they keep at most; then one of them has to go."""

PAUSE_S: Final = 0.05
WAITING: Final = 300

FLOODED: Final = b"ruffian-flood"
"""The topic on which so much is published that who subscribes and does not read cannot have it."""


class Ruffian:
    """Does one bad thing after the other."""

    def __init__(self, shift: Shift, dice: random.Random) -> None:
        self._shift = shift
        self._dice = dice
        self._open: list[socket.socket] = []
        # Where TLS is spoken, some speak none, and some show no certificate.
        self._contexts = [None, *({shift.stage.context(""), shift.stage.context(RUFFIAN)} - {None})]
        self._deeds: dict[Callable[[Place], bytes], str] = {
            self._crowd_of_calls: "address", self._pings: "address", self._half_a_frame: "address",
            self._rubbish: "", self._nothing: "", self._too_deep: "address", self._huge: "address",
            self._other_language: "", self._subscriptions: "address", self._cancels: "address",
            self._subscriber: "pubsub", self._bomb: "pubsub", self._half_a_publish: "pubsub", self._flood: "pubsub",
            self._half_a_request: "admin", self._unread_pages: "admin",
        }  # fmt: skip

    def act(self) -> None:
        """Do one of them at some node, and leave the connection as it is for a while."""
        place = self._dice.choice(self._shift.stage.places)
        deed, door = self._dice.choice([*self._deeds.items()])
        door = door or self._dice.choice(("address", "pubsub", "admin", "silk"))
        with contextlib.suppress(OSError):
            sock = self._shift.stage.dial(getattr(place, door), self._dice.choice(self._contexts), 2.0)
            self._open.append(sock)
            sock.setblocking(False)
            sock.send(deed(place))
            self._shift.counts[deed.__name__.strip("_").replace("_", " ")] += 1
        while len(self._open) > CROWD or (self._open and self._dice.random() < 0.3):
            self._leave(self._open.pop(self._dice.randrange(len(self._open))))

    def leave(self) -> None:
        """Go, all of them."""
        for sock in self._open:
            sock.close()

    def _leave(self, sock: socket.socket) -> None:
        if self._dice.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        sock.close()

    def _topic(self) -> str:
        return f"ruffian-{self._dice.randrange(10**9)}"

    def _crowd_of_calls(self, _: Place) -> bytes:
        kinds = (":recv!", ":send!", ":take!")
        calls = []
        for number in range(WAITING):
            kind = self._dice.choice(kinds)
            elements = [kind, number, self._dice.choice((100, 5_000, 60_000)), self._topic()]
            calls.append(elements if kind == ":recv!" else [*elements, "x" * 20])
        return frames(*calls)

    def _pings(self, _: Place) -> bytes:
        return frames(*([":hello", "x" * 20, {}] for _ in range(3_000)))  # of which none is read

    def _half_a_frame(self, _: Place) -> bytes:
        return frames([":send!", 1, 1000, self._topic(), "y" * 1000])[: self._dice.randrange(1, 1000)]

    def _rubbish(self, _: Place) -> bytes:
        return self._dice.randbytes(self._dice.choice((1, 100, 10_000)))

    def _nothing(self, _: Place) -> bytes:
        return b""

    def _too_deep(self, _: Place) -> bytes:
        return raw_call(packed(":send!"), b"\x01", b"\x00", packed("t"), b"\x91" * 5000 + b"\x00") * 20

    def _huge(self, _: Place) -> bytes:
        return frames([":recv!", "i" * 1000, 1000, "t"], [":recv!", 1, 1000, "t" * 10_000], [":recv!", 2, 2**62, "t"])

    def _other_language(self, _: Place) -> bytes:
        return self._dice.choice((b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"PING\r\n" * 100))

    def _subscriptions(self, _: Place) -> bytes:
        topics = [FLOODED, *(self._topic() for _ in range(100))]
        return frames(*([":subscribe", number, topic] for number, topic in enumerate(topics)))

    def _cancels(self, _: Place) -> bytes:
        calls: list[list[Any]] = []
        for number in range(100):
            calls += [[":recv!", number, 60_000, self._topic()], [":cancel", 1000 + number, number]]
        return frames(*calls)

    def _subscriber(self, _: Place) -> bytes:
        return pubsub.subscribe(FLOODED)

    def _bomb(self, _: Place) -> bytes:
        data = zlib.compress(bytes(50 << 20), 9)
        return pubsub.publish_typed(b"ruffian-bomb", bytes((0, pubsub.COMPRESSED)), data[:60_000])

    def _half_a_publish(self, _: Place) -> bytes:
        return pubsub.publish(FLOODED, bytes(1000))[: self._dice.randrange(1, 500)]

    def _flood(self, _: Place) -> bytes:
        return b"".join(pubsub.publish(FLOODED, bytes(1000)) for _ in range(100))

    def _half_a_request(self, _: Place) -> bytes:
        return b"GET /api/state HTTP/1.1\r\nHost: 127."

    def _unread_pages(self, _: Place) -> bytes:
        return b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50


def frames(*calls: list[Any]) -> bytes:
    """Return calls as they go over the wire."""
    return b"".join(call(*each) for each in calls)


def main() -> None:
    """Be bad until the input ends."""
    shift = Shift()
    shift.watch()
    dice = random.Random(shift.seed)
    ruffian = Ruffian(shift, dice)
    while not shift.over.wait(dice.expovariate(1 / PAUSE_S)):
        ruffian.act()
    ruffian.leave()
    shift.end()


if __name__ == "__main__":
    main()
