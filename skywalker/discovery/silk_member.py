"""Addresses from Silk, for a node: it is a member of the cluster itself, and so the others find it too.

Membership tells who comes and who leaves. That a member has failed says only that its Silk is silent, perhaps on the
other side of a cut: whether its node lives, whoever dials it finds out. So for a while its address counts on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from skywalker.address import Address
from skywalker.discovery import pace
from skywalker.discovery.silk import SilkAccess, knock, require
from skywalker.discovery.source import Finding, Source
from skywalker.errors import DiscoveryError, SkywalkerError, Unreachable
from skywalker.members import Member
from skywalker.silk.endpoints import HERE, canonical, host

if TYPE_CHECKING:
    from skywalker.silk.info import NodeInfo
    from skywalker.silk.machine import Machine
    from skywalker.silk.node import Node

log: Final = logging.getLogger("skywalker.discovery")

PAUSE_S: Final = 0.02
"""Seconds between looks at least, or a cluster that starts would be looked at for each of its nodes."""

JOIN_S: Final = 5.0
"""Seconds for one of those that the node was told of to answer, before it is said that none does."""

MAX_FAILED: Final = 256
"""Addresses of those that failed; past that, those that failed first are forgotten."""

LEAVE_S: Final = 1.0
"""Seconds for the last words to leave; they are said in far less, where nothing is in the way."""


class Surroundings:
    """What a membership asks of the process that it is in; that of a test has a time of its own."""

    machine: Machine | None = None
    """What its node is on; the real one, which loads ZeroMQ, if that is not said once it lives."""

    def condition(self) -> threading.Condition:
        """Return something by which threads wait for each other."""
        return threading.Condition()

    def begin(self, live: Callable[[], Coroutine[Any, Any, None]]) -> threading.Thread:
        """Have it live, in an event loop in a thread of its own; return that."""
        thread = threading.Thread(target=lambda: asyncio.run(live()), name="silk", daemon=True)
        thread.start()
        return thread

    def knock(self, endpoint: str) -> None:
        """Return if somebody takes connections there. Raises OSError."""
        knock(endpoint)


SURROUNDINGS: Final = Surroundings()


class SilkMember(Source):
    """The other members, for the node `me`. A look waits, without end, until they are others than before."""

    def __init__(
        self,
        me: Member,
        router: str,
        pub: str,
        access: SilkAccess,
        last: Iterable[Address] = (),
        around: Surroundings = SURROUNDINGS,
    ) -> None:
        """`router` and `pub` are the endpoints to listen at; `last` is where nodes were known in an earlier life.

        Raises DiscoveryError where pyzmq is not installed.
        """
        require()
        self._me = me
        self._router = router
        self._pub = pub
        self._access = access
        self._last = frozenset(last)
        self._around = around
        self._news = around.condition()
        self._told: frozenset[Address] | DiscoveryError | None = None  # what no look has returned yet
        self._thread: threading.Thread | None = None
        self._end: Callable[[], object] | None = None  # while it is a member
        self._over = False

    def look(self) -> Finding:
        with self._news:
            if self._thread is None and not self._over:
                # ZeroMQ is not loaded before: no process that forks may have it.
                self._thread = self._around.begin(self._live)
            self._news.wait_for(lambda: self._told is not None)
            told, self._told = self._told, None
        assert told is not None
        if isinstance(told, DiscoveryError):
            raise told
        return Finding(told, PAUSE_S)

    def leave(self) -> None:
        thread = self._stop()
        if thread is not None:
            thread.join(LEAVE_S)

    def close(self) -> None:
        self._stop()
        self._tell(DiscoveryError(f"{self}: closed"))

    def __str__(self) -> str:
        return str(self._access) if self._access.endpoints else f"Silk at {self._router}"

    def _stop(self) -> threading.Thread | None:
        with self._news:
            self._over = True
            if self._end is not None:
                self._end()
            return self._thread

    def _tell(self, told: frozenset[Address] | DiscoveryError) -> None:
        with self._news:
            self._told = told
            if not isinstance(told, DiscoveryError):
                self._last = told  # who is a member anew after a failure has not forgotten them
            self._news.notify_all()

    # In a thread of its own.

    async def _live(self) -> None:
        """Be a member, until it is over; tell who the others are, and what has gone wrong."""
        try:
            await self._be_member()
        except asyncio.CancelledError:
            return
        except Exception as error:
            with self._news:
                self._thread = None  # the next look tries again
            self._tell(DiscoveryError(f"{self}: {'; '.join(map(_reason, _causes(error)))}"))

    async def _be_member(self) -> None:
        from skywalker.silk.machine import MACHINE
        from skywalker.silk.node import Node

        me, keys = self._me, self._access.keys_file or None
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        async with Node(
            self._router,
            self._pub,
            name=me.name,
            keys=keys,
            advertise=me.address.host,
            junction=me.as_map(),
            machine=self._around.machine or MACHINE,
        ) as node:
            with self._news:
                if self._over:
                    return
                self._end = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                company = Company(node, self._access.endpoints, sorted(self._last), self._tell, self._around.knock)
                await company.keep(str(self))
            finally:
                with self._news:
                    self._end = None


class Company:
    """The other members of a node, those that it is told of first and those that failed lately among them."""

    def __init__(
        self,
        node: Node,
        seeds: Iterable[str],
        last: Iterable[Address],
        tell: Callable[[frozenset[Address] | DiscoveryError], None],
        knock: Callable[[str], None],
    ) -> None:
        self._node = node
        self._seeds = [*dict.fromkeys(seeds)]
        self._tell = tell
        self._knock = knock
        self._loop = asyncio.get_running_loop()
        self._failed: dict[Address, asyncio.TimerHandle] = {}  # until each is forgotten
        self._is_telling = False
        for address in last:
            self._remember(address)

    async def keep(self, where: str) -> None:
        """Join, and tell who is there, until cancelled."""
        from skywalker.silk.events import Failed, Joined, Left

        events = self._node.events()
        self._tell_all()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._join(where))
            async for event in events:
                match event:
                    case Joined(node) | Left(node):
                        self._forget(_serves(node))
                    case Failed(node):
                        self._remember(_serves(node))
                self._tell_soon()

    def _tell_soon(self) -> None:
        """Tell once what several events in a row have changed."""
        if not self._is_telling:
            self._is_telling = True
            self._loop.call_soon(self._tell_all)

    def _tell_all(self) -> None:
        self._is_telling = False
        found = {_serves(node) for node in self._node.members.values()}
        self._tell(frozenset(address for address in found | self._failed.keys() if address is not None))

    # Those that have failed.

    def _remember(self, address: Address | None) -> None:
        self._forget(address)
        if address is not None:
            if len(self._failed) >= MAX_FAILED:
                self._forget(next(iter(self._failed)))
            self._failed[address] = self._loop.call_later(pace.FORGET_S, self._expire, address)

    def _forget(self, address: Address | None) -> None:
        if address is not None and address in self._failed:
            self._failed.pop(address).cancel()

    def _expire(self, address: Address) -> None:
        self._forget(address)
        self._tell_all()

    # Those that it is to join.

    async def _join(self, where: str) -> None:
        missed = [seed for seed in await asyncio.gather(*map(self._try, self._seeds)) if seed]
        if missed and not self._node.members:
            obstacles = await asyncio.gather(*map(self._obstacle, missed))
            # The first of those that are all told the same reaches just itself, and that is no trouble.
            is_first = len(missed) < len(self._seeds) and not any(there for there, _ in obstacles)
            if not is_first and not self._node.members:
                causes = "; ".join(cause for _, cause in obstacles)
                self._tell(DiscoveryError(f"{where}: nobody has answered, so this node is alone for now: {causes}"))

    async def _try(self, seed: str) -> str:
        """Return the endpoint if nobody answers there, after which it goes on to be tried."""
        try:
            await self._node.join(seed, JOIN_S)
        except Unreachable:
            self._node.seek(seed)
            return seed
        return ""

    async def _obstacle(self, endpoint: str) -> tuple[bool, str]:
        """Return whether somebody is there who does not answer, and what is in the way."""
        try:
            await asyncio.to_thread(self._knock, endpoint)
        except OSError as error:
            return False, f"{endpoint}: {error.strerror or error}"
        return True, f"{endpoint}: whoever is there gives no answer, and may have other keys"


def _serves(node: NodeInfo) -> Address | None:
    """Return where a member serves skywalker, if that is on its own host, as with nodes of skywalker.

    Whoever names another host wants us to go there. Who is on this machine could go there without us.
    """
    where = node.serves
    return where if where is not None and host(node.router) in (HERE, canonical(where.host)) else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what has failed, where that are tasks of a group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
    else:
        yield error


def _reason(error: BaseException) -> str:
    """Return in words why one is a member no more; a bug leaves its traceback in the log."""
    if isinstance(error, SkywalkerError | ImportError):
        return str(error)
    from zmq import ZMQError

    if isinstance(error, ZMQError | OSError):
        return error.strerror or str(error)
    log.error("Silk has a bug", exc_info=error)
    return f"a bug, {error!r}"
