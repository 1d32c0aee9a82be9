"""Workers that are killed in the middle of a turn, as a simulation does it: nobody sees more of them from then on."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.test_layout import ROOT
from tests.workers.core.clusters import End
from tests.workers.core.test_links import LinkedHistory
from tests.workers.core.worlds import Beneath, Wire
from workers.doors.clients import Clients
from workers.engine import points
from workers.mesh.links import Links

SOURCES: Final = "".join(path.read_text() for path in (ROOT / "workers" / "core").glob("[!_]*.c"))
OF_THE_CORE: Final = [point for point in points.POINTS if f'core_reached(core, "{point}")' in SOURCES]
RARE: Final = ("send_passing", "recv_passed", "may_move", "arriving", "arrived", "ask_all", "answered")
"""What few histories come to more than once or twice."""
KILLS: Final = 5
STEPS: Final = 40


class Killed(SystemExit):
    """As in the simulation."""


class Trap:
    """Kills whoever comes by for the last of so many times, and remembers what others saw of all then."""

    def __init__(self, history: LinkedHistory, times: int) -> None:
        self._history = history
        self._left = times
        self.seen: list[object] | None = None
        self.asked = 0
        """How often anything was asked since."""

    def looks(self) -> list[object]:
        cluster = self._history.cluster
        wires: list[Any] = [each for world in cluster.worlds for each in world.wires.values()]
        shared = [bytes(cells) for worker in cluster.workers for cells in (worker.memory, worker.turn.hand.memory)]
        ends = [(each.mask, each.is_closed, [*each.coming], each.ended) for each in wires if isinstance(each, End)]
        clients = [
            (each.mask, each.is_closed, each.is_shut, bytes(each.taken), bytes(each.coming))
            for each in wires
            if isinstance(each, Wire)
        ]
        return [shared, ends, clients]

    def reached(self) -> None:
        assert self.seen is None, "it is dead"
        self._left -= 1
        if not self._left:
            self.seen = self.looks()
            raise Killed

    def watched(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that the core calls, counting what it does when it is dead."""

        def call(*given: Any, **named: Any) -> Any:
            self.asked += self.seen is not None
            return method(*given, **named)

        return call

    def after(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return one after which it is killed."""

        def call(*given: Any, **named: Any) -> Any:
            did = method(*given, **named)
            self.reached()
            return did

        return call

    def watch_all(self, patched: pytest.MonkeyPatch) -> None:
        """Have all that a core asks of its machine, and of Python, pass by here."""
        for where in (Beneath, Clients, Links):
            for name in [name for each in where.__mro__[:-1] for name, it in vars(each).items() if callable(it)]:
                if not name.startswith("_") and name != "begin":
                    patched.setattr(where, name, self.watched(getattr(where, name)))


def kills_one(trap: Trap, history: LinkedHistory) -> bool:
    """Have a history until somebody is killed; return whether somebody was."""
    cluster = history.cluster
    workers = [weakref.ref(worker) for worker in cluster.workers]
    try:
        for _ in range(STEPS):
            history.step()
    except Killed:
        assert trap.asked == 0, "the dead ask nothing"
        assert trap.looks() == trap.seen, "they change nothing"
    else:
        return False
    shared = [(cells, bytes(cells)) for worker in cluster.workers for cells in (worker.memory, worker.turn.hand.memory)]
    cluster.workers.clear()
    history.homes.clear()
    gc.collect()
    assert {ref() for ref in workers} == {None}, "a test that keeps it tests nothing"
    assert trap.asked == 0, "nor do they when they are dropped"
    assert all(bytes(cells) == before for cells, before in shared)
    return True


def kill_some(
    monkeypatch: pytest.MonkeyPatch, set_trap: Callable[[pytest.MonkeyPatch, Trap], None], most: int = 7
) -> None:
    """Kill some who come by for the last of so many times at most."""
    killed = 0
    for seed in itertools.count():
        history = LinkedHistory(seed)
        history.share_of_moves = 0.8
        with monkeypatch.context() as patched:
            trap = Trap(history, 1 + seed % most)
            trap.watch_all(patched)
            set_trap(patched, trap)
            killed += kills_one(trap, history)
        if killed == KILLS:
            return


@pytest.mark.parametrize("point", OF_THE_CORE)
def test_who_is_killed_at_a_point_does_no_more(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def set_trap(patched: pytest.MonkeyPatch, trap: Trap) -> None:
        patched.setattr(points, "listener", lambda name: trap.reached() if name == point else None)

    kill_some(monkeypatch, set_trap, 2 if point.startswith("a connection") else 7)


@pytest.mark.parametrize(
    ("where", "method"),
    [
        (Beneath, "send"), (Beneath, "recv"), (Beneath, "close"), (Clients, "failed"), (Clients, "closed"),
        (Beneath, "send_passing"), (Beneath, "recv_passed"), (Clients, "may_move"), (Clients, "arriving"),
        (Clients, "arrived"),
        (Links, "said"), (Links, "link_ended"), (Links, "handed"), (Links, "ask_all"), (Links, "link_over"),
        (Links, "answered"),
    ],
)  # fmt: skip
def test_who_is_killed_by_what_it_asked_does_no_more(monkeypatch: pytest.MonkeyPatch, where: type, method: str) -> None:
    def set_trap(patched: pytest.MonkeyPatch, trap: Trap) -> None:
        patched.setattr(where, method, trap.after(getattr(where, method)))

    kill_some(monkeypatch, set_trap, 2 if method in RARE else 7)
