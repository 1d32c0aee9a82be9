"""Sockets that are no sockets, held against real ones."""

from __future__ import annotations

import array
import functools
import itertools
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.ends import BROKEN, READ, WRITE
from tests.simulation.kernel import Kernel, Task
from tests.simulation.machine import Net, Simulated
from workers.engine.machine import MACHINE, Machine

Pair = tuple[Any, Any]


class World:
    """Two ends of a connection on a machine, and time that goes by."""

    def __init__(
        self, machine: Machine, poller: Callable[[], Any], pause: Callable[[], None], tcp: Callable[[], Pair]
    ) -> None:
        self.pair = machine.pair
        self.adopt = machine.adopt
        self.tcp = tcp
        self.pause = pause
        self._poller = poller

    def events(self, end: Any) -> int:
        """Return what is ready of READ and WRITE, and whether anything is BROKEN."""
        poller = self._poller()
        poller.register(end.fileno(), READ | WRITE)
        found = [mask for _, mask in poller.poll(0)]
        poller.unregister(end.fileno())
        return sum(found) & (READ | WRITE) | (BROKEN if sum(found) & BROKEN else 0)


def real() -> World:
    def tcp() -> Pair:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            one = socket.create_connection(listener.getsockname())
            other, _ = listener.accept()
        for each in (one, other):
            each.setblocking(False)
        return one, other

    return World(MACHINE, select.epoll, lambda: time.sleep(0.02), tcp)


class Nobody:
    """A process that does nothing by itself."""

    def step(self) -> float:
        """Do nothing, for ever."""
        return float("inf")


def simulated() -> World:
    kernel = Kernel(1)
    net = Net(kernel)
    task = Task(kernel, "test", "host", Nobody())
    machine = Simulated(net, task)

    def tcp() -> Pair:
        port = net.free_port()
        [listener] = net.listen(("host", port), 1, task)
        one = machine.tcp()
        one.connect_ex(("host", port))
        kernel.go_on(0.02)
        return one, listener.accept()[0]

    return World(machine, machine.poller, lambda: kernel.go_on(0.02), tcp)


def told(call: Callable[..., Any], *given: Any) -> Any:
    """Return what it returns, or the name of its error."""
    try:
        return call(*given)
    except OSError as error:
        return type(error).__name__


def read_after_close(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    other.send(b"a value")
    world.pause()
    other.close()
    world.pause()
    return [told(one.recv, 99) for _ in range(4)]


def read_after_close_with_unread(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    other.send(b"a value")
    one.send(b"unread")
    world.pause()
    other.close()
    world.pause()
    return [world.events(one), *(told(one.recv, 99) for _ in range(4)), told(one.send, b"more")]


def asked_after_close_with_unread(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    one.send(b"unread")
    world.pause()
    other.close()
    world.pause()
    return [*(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for _ in range(2)), told(one.recv, 99)]


def write_after_close(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    other.send(b"a value")
    world.pause()
    other.close()
    world.pause()
    found = []
    for _ in range(3):
        found.append(told(one.send, b"more"))
        world.pause()
    return [*found, *(told(one.recv, 99) for _ in range(3)), world.events(one)]


def write_after_close_with_unread(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    other.send(b"a value")
    one.send(b"unread")
    world.pause()
    other.close()
    world.pause()
    return [*(told(one.send, b"more") for _ in range(3)), *(told(one.recv, 99) for _ in range(3))]


def half_closed(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    other.send(b"last")
    other.shutdown(socket.SHUT_WR)
    world.pause()
    found = [world.events(one), told(one.send, b"more"), *(told(one.recv, 99) for _ in range(2))]
    world.pause()
    return [*found, told(other.recv, 99)]


def nothing_there(world: World, pair: Pair) -> list[Any]:
    one, other = pair
    return [world.events(one), told(one.recv, 99), told(other.recv, 99)]


def pass_on(pair: Pair, passed: Any) -> None:
    pair[0].sendmsg([b"take it"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed.fileno()]))])
    passed.close()


def passed_and_taken(world: World, pair: Pair) -> list[Any]:
    near, far = world.tcp()
    far.send(b"before")
    pass_on(pair, near)
    pair[0].send(b"after")
    world.pause()
    data, ((_, _, fds),), _, _ = pair[1].recvmsg(99, socket.CMSG_SPACE(4))
    taken = world.adopt(array.array("i", fds)[0])
    found = [data, told(pair[1].recv, 99), told(taken.recv, 99), told(taken.send, b"here")]
    world.pause()
    found.append(told(far.recv, 99))
    taken.close()
    world.pause()
    return [*found, told(far.recv, 99)]


def passed_and_not_asked_for(world: World, pair: Pair) -> list[Any]:
    near, far = world.tcp()
    pass_on(pair, near)
    world.pause()
    found = [told(far.recv, 99), told(pair[1].recv, 99)]
    world.pause()
    return [*found, told(far.recv, 99)]


def passed_and_never_read(world: World, pair: Pair) -> list[Any]:
    near, far = world.tcp()
    pass_on(pair, near)
    world.pause()
    found = [told(far.recv, 99)]
    pair[0].close()
    world.pause()
    found.append(told(far.recv, 99))
    pair[1].close()
    world.pause()
    return [*found, told(far.recv, 99)]


def passed_to_nobody(world: World, pair: Pair) -> list[Any]:
    near, far = world.tcp()
    pair[1].close()
    world.pause()
    found = [told(pass_on, pair, near), told(far.recv, 99)]
    near.close()
    world.pause()
    return [*found, told(far.recv, 99)]


@pytest.mark.parametrize(
    "scenario", [passed_and_taken, passed_and_not_asked_for, passed_and_never_read, passed_to_nobody]
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_descriptor_that_is_passed_on_is_closed_with_the_last_who_has_it(
    scenario: Callable[[World, Pair], list[Any]],
) -> None:
    found = []
    for world in (real(), simulated()):
        pair = world.pair()
        found.append(scenario(world, pair))
        for each in pair:
            each.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["pair", "tcp"])
@pytest.mark.parametrize(
    "scenario",
    [
        nothing_there,
        read_after_close,
        read_after_close_with_unread,
        asked_after_close_with_unread,
        write_after_close,
        write_after_close_with_unread,
        half_closed,
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_simulated_socket_does_as_a_real_one(scenario: Callable[[World, Pair], list[Any]], kind: str) -> None:
    found = []
    for world in (real(), simulated()):
        pair = world.pair() if kind == "pair" else world.tcp()
        found.append(scenario(world, pair))
        for each in pair:
            each.close()
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_as_many_tiny_packets_fit_and_a_quarter_must_be_left_before_more_are_written() -> None:
    found = []
    for world in (real(), simulated()):
        one, other = world.pair()
        fit = 0
        while told(one.send, b"x") == 1:
            fit += 1
        read = 0
        while not world.events(one) & WRITE:
            other.recv(9)
            read += 1
        found.append((fit, read))
        one.close()
        other.close()
    assert found[0] == found[1]


class Watch:
    """A process that looks at the clock all the time, and keeps what it saw."""

    def __init__(self) -> None:
        self.kernel = Kernel(1)
        self.task = Task(self.kernel, "watch", "host", self)
        self.seen: list[tuple[float, float]] = []  # what the time was, and what the clock said
        self.task.wake(self.kernel.now)

    def step(self) -> float:
        """Look."""
        self.seen.append((self.kernel.now, self.task.clock()))
        return self.seen[-1][1] + 0.01


@pytest.mark.parametrize(("suspended_s", "stands_still_s"), [([1.0], 1.0), ([1.0, 0.1], 1.0), ([0.3, 1.0], 1.2)])
@pytest.mark.parametrize("stopped_s", [None, 0.1, 0.5])
def test_the_clock_of_a_host_stands_still_as_long_as_the_host_and_never_goes_back(
    suspended_s: list[float], stands_still_s: float, stopped_s: float | None
) -> None:
    watch = Watch()
    for number, seconds in enumerate(suspended_s):
        suspend = functools.partial(watch.kernel.suspend, "host", seconds)
        watch.kernel.at(watch.kernel.now + 1.0 + 0.2 * number, suspend)
    if stopped_s is not None:
        watch.kernel.at(watch.kernel.now + 1.3, functools.partial(watch.task.stop, stopped_s))
    watch.kernel.go_on(4.0)
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(watch.seen))
    began, ended = watch.seen[0], watch.seen[-1]
    assert (ended[0] - began[0]) - (ended[1] - began[1]) == pytest.approx(stands_still_s, abs=0.005)
    assert not any(1.31 < at - began[0] < 1.0 + stands_still_s for at, _ in watch.seen)


@pytest.mark.parametrize("lasting", [(2.0, 0.5), (0.5, 2.0)])
def test_hosts_are_parted_until_the_last_of_several_partings_is_over(lasting: tuple[float, float]) -> None:
    net = Net(Kernel(1))
    for seconds in lasting:
        net.part("one", "two", seconds)
    assert net.parted["one", "two"] == net.kernel.now + 2.0
