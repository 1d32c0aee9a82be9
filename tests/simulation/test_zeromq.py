"""ZeroMQ that is none, held against the real one."""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from tests.helpers import time_factor
from tests.silk.ground import Ground, Real, Simulated
from tests.silk.world import World
from tests.simulation.zeromq import Context

PAUSE_S = 0.05

QUIET_S = 0.3
"""Seconds after which nothing more comes: real sockets need some to be connected, on a machine that is busy more."""

ENDPOINTS = itertools.count(25_300)


class Sockets:
    """Some of one process each, so that each can be ended by itself."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.endpoint = f"tcp://127.0.0.1:{next(ENDPOINTS)}"
        self._contexts: list[Any] = []
        self._made: list[Any] = []

    def make(self, kind: int, **options: int) -> Any:
        context = self.ground.context()
        self._contexts.append(context)
        made = context.socket(kind)
        self._made.append(made)
        for name, value in {"LINGER": 0, "RECONNECT_IVL": 50, **options}.items():
            made.set(getattr(zmq, name), value)
        return made

    def bound(self, kind: int, **options: int) -> Any:
        made = self.make(kind, **options)
        made.bind(self.endpoint)
        return made

    def bound_again(self, kind: int) -> Any:
        """One in the place of another, which gives it up some time after it is closed."""
        made = self.make(kind)
        self.ground.eventually(lambda: self._binds(made), 5.0)
        return made

    def _binds(self, made: Any) -> bool:
        try:
            made.bind(self.endpoint)
        except zmq.ZMQError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True

    def connected(self, kind: int, **options: int) -> Any:
        made = self.make(kind, **options)
        made.connect(self.endpoint)
        return made

    def pause(self, seconds: float = PAUSE_S) -> None:
        self.ground.pause(seconds * time_factor())

    def read(self, sock: Any) -> list[list[bytes]]:
        """Return all that comes until nothing more does."""
        found = []
        while self.ground.poll([sock], QUIET_S * time_factor()):
            frames = sock.recv_multipart()
            found.append(frames[1:] if self.kind(sock) == zmq.ROUTER else frames)
        return found

    def kind(self, sock: Any) -> int:
        return int(sock.kind if hasattr(sock, "kind") else sock.type)

    def close(self) -> None:
        for made in self._made:
            made.close(linger=0)
        for context in self._contexts:
            context.destroy(linger=0)


def sent(sock: Any, *frames: bytes) -> bool:
    """Whether there was room for a message."""
    try:
        sock.send_multipart([*frames], zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def waits_for_who_comes_later(sockets: Sockets) -> Any:
    dealer = sockets.connected(zmq.DEALER)
    said = [sent(dealer, b"%d" % number) for number in range(5)]
    sockets.pause()
    return said, sockets.read(sockets.bound(zmq.ROUTER))


def as_many_wait_as_the_mark_says(sockets: Sockets) -> Any:
    dealer = sockets.connected(zmq.DEALER, SNDHWM=7)
    said = [sent(dealer, b"%d" % number) for number in range(10)]
    return said, len(sockets.read(sockets.bound(zmq.ROUTER)))


def who_is_connected_to_nobody_cannot_send(sockets: Sockets) -> Any:
    return sent(sockets.make(zmq.DEALER), b"x")


def an_answer_goes_back_and_to_a_stranger_nowhere(sockets: Sockets) -> Any:
    router, dealer, other = sockets.bound(zmq.ROUTER), sockets.connected(zmq.DEALER), sockets.connected(zmq.DEALER)
    sent(dealer, b"question")
    sockets.ground.poll([router], 1.0)
    sender, *_ = router.recv_multipart()
    sent(router, b"nobody", b"lost")
    sent(router, sender, b"answer")
    return sockets.read(dealer), sockets.read(other)


def who_ends_at_once_has_said_what_was_on_its_way(sockets: Sockets) -> Any:
    router, dealer = sockets.bound(zmq.ROUTER), sockets.connected(zmq.DEALER)
    sockets.pause()
    for number in range(40):
        sent(dealer, b"%d" % number)
    sockets.pause()
    dealer.close(linger=0)
    sockets.pause()
    return sockets.read(router)


def what_comes_by_another_connection_may_be_read_first(sockets: Sockets) -> Any:
    router, dealer = sockets.bound(zmq.ROUTER), sockets.connected(zmq.DEALER)
    for number in range(3):
        sent(dealer, b"%d" % number)
    sockets.pause()
    dealer.disconnect(sockets.endpoint)
    dealer.connect(sockets.endpoint)
    for number in range(3, 6):
        sent(dealer, b"%d" % number)
    sockets.pause()
    return sockets.read(router)


def last_words_linger(sockets: Sockets) -> Any:
    dealer = sockets.connected(zmq.DEALER)
    sent(dealer, b"last")
    dealer.close(linger=1000)
    sockets.pause()
    return sockets.read(sockets.bound(zmq.ROUTER))


def last_words_do_not_linger(sockets: Sockets) -> Any:
    dealer = sockets.connected(zmq.DEALER)
    sent(dealer, b"last")
    dealer.close(linger=0)
    sockets.pause()
    return sockets.read(sockets.bound(zmq.ROUTER))


def another_at_the_same_place_gets_what_comes_then(sockets: Sockets) -> Any:
    router, dealer = sockets.bound(zmq.ROUTER), sockets.connected(zmq.DEALER)
    sent(dealer, b"to the first")
    first = sockets.read(router)
    router.close(linger=0)
    sockets.pause()
    sent(dealer, b"to the second")
    sockets.pause()
    return first, sockets.read(sockets.bound_again(zmq.ROUTER))


def one_place_is_had_by_one(sockets: Sockets) -> Any:
    sockets.bound(zmq.ROUTER)
    try:
        sockets.bound(zmq.PUB)
    except zmq.ZMQError as error:
        return error.errno
    return None


def topics_are_beginnings(sockets: Sockets) -> Any:
    pub, sub = sockets.bound(zmq.PUB), sockets.connected(zmq.SUB)
    sub.subscribe("a")
    sub.subscribe("_")
    sockets.pause(0.2)
    for topic in (b"a", b"ab", b"b", b"_ka", b""):
        sent(pub, topic, b"x")
    return sockets.read(sub)


def who_listens_later_has_missed_what_was_said(sockets: Sockets) -> Any:
    pub = sockets.bound(zmq.PUB)
    sent(pub, b"a", b"early")
    sub = sockets.connected(zmq.SUB)
    sub.subscribe("a")
    sockets.pause(0.2)
    sent(pub, b"a", b"late")
    return sockets.read(sub)


def who_listens_is_known_again_after_a_restart(sockets: Sockets) -> Any:
    pub, sub = sockets.bound(zmq.PUB), sockets.connected(zmq.SUB)
    sub.subscribe("a")
    sockets.pause()
    pub.close(linger=0)
    sockets.pause()
    pub = sockets.bound_again(zmq.PUB)
    for _ in range(50):
        sent(pub, b"a", b"again")
        if sockets.ground.poll([sub], 0.1):
            return sub.recv_multipart()
    return None


def who_listens_no_more_hears_no_more(sockets: Sockets) -> Any:
    pub, sub = sockets.bound(zmq.PUB), sockets.connected(zmq.SUB)
    sub.subscribe("a")
    sockets.pause(0.2)
    sub.disconnect(sockets.endpoint)
    sockets.pause()
    sent(pub, b"a", b"x")
    try:
        sub.disconnect(sockets.endpoint)
    except zmq.ZMQError as error:
        return sockets.read(sub), error.errno
    return None


def who_sends_too_much_at_once_is_cut_off_and_may_come_again(sockets: Sockets) -> Any:
    router, dealer = sockets.bound(zmq.ROUTER, MAXMSGSIZE=1000), sockets.connected(zmq.DEALER)
    sent(dealer, b"x" * 1000)
    found = sockets.read(router)
    sent(dealer, b"x" * 1001)
    sockets.pause(0.5)
    sent(dealer, b"after")
    return len(found), sockets.read(router)


def the_slow_lose_what_they_have_no_room_for(sockets: Sockets) -> Any:
    pub, sub = sockets.bound(zmq.PUB, SNDHWM=10), sockets.connected(zmq.SUB, RCVHWM=10)
    sub.subscribe("a")
    sockets.pause(0.2)
    for _ in range(200):
        sent(pub, b"a", b"x" * 200_000)
    found = sockets.read(sub)
    return 10 <= len(found) < 200


SCENARIOS = [each for name, each in list(globals().items()) if getattr(each, "__annotations__", {}).get("sockets")]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_simulated_socket_does_as_a_real_one(scenario: Callable[[Sockets], Any]) -> None:
    found = []
    for ground in (Real(), Simulated()):
        with closed(Sockets(ground)) as sockets:
            found.append(scenario(sockets))
    assert found[0] == found[1]


@contextlib.contextmanager
def closed(sockets: Sockets) -> Iterator[Sockets]:
    try:
        yield sockets
    finally:
        sockets.close()


OURS, THEIRS = "10.0.0.1", "10.0.0.2"

OFF_S = 2.0
"""Seconds for which a machine has no power."""


class Power:
    """Sockets on two machines, of which theirs loses power."""

    def __init__(self) -> None:
        self.world = World()

    def _made(self, kind: int, host: str) -> Any:
        return Context(self.world.zeromq, self.world.process(host).task).socket(kind)

    def bound(self, kind: int, host: str) -> Any:
        """Return one that listens on a host, in a new process."""
        made = self._made(kind, host)
        made.bind(f"tcp://{host}:3444")
        return made

    def connected(self, kind: int, host: str, to: str) -> Any:
        """Return one that is connected, in a new process, to the one that listens on another host."""
        made = self._made(kind, host)
        made.connect(f"tcp://{to}:3444")
        self.world.go_on(0.5)
        return made

    def fails(self) -> None:
        """Have theirs fail, and be back."""
        self.world.net.turn_off(THEIRS)
        for each in self.world.processes:
            if each.host == THEIRS:
                each.kill()
        self.world.kernel.at(self.world.now + OFF_S, lambda: self.world.net.turn_on(THEIRS))

    def read(self, sock: Any) -> list[bytes]:
        """Return what comes within some seconds."""
        self.world.go_on(5.0)
        found = []
        while sock.has_message():
            found.append(sock.recv_multipart()[-1])
        return found


def test_who_says_something_to_a_machine_without_power_has_it_lost_and_is_connected_anew() -> None:
    here = Power()
    here.bound(zmq.ROUTER, THEIRS)
    dealer = here.connected(zmq.DEALER, OURS, THEIRS)
    here.fails()
    assert sent(dealer, b"lost")
    here.world.go_on(OFF_S + 0.01)
    router = here.bound(zmq.ROUTER, THEIRS)
    assert here.read(router) == []
    assert sent(dealer, b"found")
    assert here.read(router) == [b"found"]


def test_who_only_listens_to_a_machine_never_hears_that_it_had_no_power() -> None:
    here = Power()
    here.bound(zmq.PUB, THEIRS)
    sub = here.connected(zmq.SUB, OURS, THEIRS)
    sub.subscribe("")
    here.fails()
    here.world.go_on(OFF_S + 0.01)
    pub = here.bound(zmq.PUB, THEIRS)
    here.world.go_on(60.0)
    assert not pub.peers
    sub.disconnect("tcp://10.0.0.2:3444")
    sub.connect("tcp://10.0.0.2:3444")
    here.world.go_on(0.5)
    sent(pub, b"heard")
    assert here.read(sub) == [b"heard"]


def test_who_is_bound_has_a_peer_without_power_until_there_is_something_to_say_and_it_is_back() -> None:
    here = Power()
    pub = here.bound(zmq.PUB, OURS)
    here.connected(zmq.SUB, THEIRS, OURS).subscribe("")
    here.world.go_on(0.1)
    here.fails()
    here.world.go_on(OFF_S / 2)
    sent(pub, b"to nobody")
    here.world.go_on(OFF_S / 4)
    assert len(pub.peers) == 1
    here.world.go_on(OFF_S)
    assert not pub.peers
