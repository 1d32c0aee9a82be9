"""The process of a node that does everything slow or chatty: who else is in the cluster, and being found by others.

It hands the supervisor a snapshot whenever the cluster changes. If it dies, traffic goes on
with the last one. Sources of addresses and Consul may block, each in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.discovery.registration import Registration
from skywalker.discovery.roster import Roster
from skywalker.discovery.source import Source
from skywalker.discovery.watch import watch
from skywalker.errors import LocalProtocolError
from skywalker.members import Member, Snapshot
from workers.agent.acquaintance import Ours
from workers.agent.circle import Circle
from workers.agent.health import Health
from workers.engine.machine import Machine
from workers.ipc import exits, snapshots
from workers.ipc.control import Channel, Drain, Forget, Heard, Inspect, Left, Message, Ring
from workers.stats.log import Log

if TYPE_CHECKING:
    from workers.agent.admin.server import Admin

NOT_OURS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
"""Signals go to the whole process group, but are for the supervisor, whose end is the agent's too."""

BEAT_S: Final = 1.0
"""Seconds between the times that it says that its loop turns."""

TELL_AGAIN_S: Final = 0.1
"""Seconds until a supervisor that had no room for a snapshot is told again."""

FORGET_S: Final = 2.0
"""Seconds for a registration to be taken back before the next agent begins all the same."""

BIND_AGAIN_S: Final = 1.0
"""Seconds until the health server tries again for a port that another has."""


class Agent:
    """The agent of the node `me`, all of whose workers serve, from its fork to its end.

    `source` lists addresses of the cluster. With `learning` others are learned from the nodes there, and they learn
    ours. By `trust` this node and they know each other, and `tls` returns how that is spoken with them. `health`
    answers for the node; once it is known where, `registration` is made. `admin` shows what it does. `last` is the
    snapshot that an agent before this one made last. `alive` is called as long as its loop turns.
    """

    def __init__(
        self,
        me: Member,
        source: Source | None,
        *,
        learning: bool,
        trust: Trust | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        registration: Callable[[Address], Registration] | None,
        health: Health | None,
        channel: Channel,
        log: Log,
        machine: Machine,
        admin: Admin | None = None,
        last: Iterable[Member] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._me = me
        self._source = source
        self._learning = learning
        self._trust = trust or Trust()
        self._tls = tls
        self._registration = registration
        self._health = health
        self._admin = admin
        self._channel = channel
        self._log = log
        self._machine = machine
        self._last = last
        self._alive = alive
        self._unsaid: Snapshot | None = None  # the supervisor had no room for it
        self._registered: threading.Thread | None = None
        self._stopped = machine.event()
        self._draining = machine.event()
        self.status = exits.OK
        """With which it ends."""

    def run(self) -> int:
        """Run until the supervisor is gone; return the exit status."""
        signal.set_wakeup_fd(-1)
        for number in NOT_OURS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Without asyncio.run(), which at the end would wait for a name server that does not answer.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self.live())
        finally:
            loop.close()
        return self.status

    async def live(self) -> None:
        """Do all that it does, in the loop that runs, until the supervisor is gone."""
        self._loop = loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_bug)
        self._over = loop.create_future()
        luck = self._machine.random
        roster = Roster(self._me, learning=self._learning, luck=luck, now=loop.time(), last=self._last)
        ours = Ours(self._me, self._learning, self._machine.nonce, self._trust, self._tls)
        self._circle = Circle(roster, ours, self._publish, self._log)
        loop.add_reader(self._channel.fileno(), self._hear)
        self._beat()
        if self._health is not None:
            self._open(self._health)
        if self._admin is not None:
            self._admin.start(lambda: self._soon(self._finish, exits.BUG))
        if self._source is not None:
            self._thread("watch", self._watch)
        try:
            await self._over
        finally:
            self._end()

    def _beat(self) -> None:
        self._alive()
        self._loop.call_later(BEAT_S, self._beat)

    def _end(self) -> None:
        loop = self._loop
        loop.remove_reader(self._channel.fileno())
        self._circle.close()
        # The threads end with this process. Neither they nor what they hold may keep it from ending.
        self._stopped.set()
        if self._source is not None:
            self._source.close()

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        trace = "".join(traceback.format_exception(error)) if error else context["message"]
        self._log.error("bug", trace=trace)
        self._finish(exits.BUG)

    def _finish(self, status: int) -> None:
        self.status = status
        if not self._over.done():
            self._over.set_result(None)

    # The supervisor.

    def _hear(self) -> None:
        while True:
            try:
                received = self._channel.receive()
            except BlockingIOError:
                return
            if received is None:
                self._finish(exits.OK)
                return
            self._obey(*received)

    def _obey(self, message: Message, passed: int | None) -> None:
        match message:
            case Heard(address=text):
                try:
                    self._circle.hinted(Address.parse(text))
                except LocalProtocolError as error:
                    self._log.warning("bad-hint", reason=error)
            case Inspect(slot=slot, pid=pid):
                if passed is None:
                    self._log.error("no-descriptor", message="Inspect")
                elif self._admin is not None:
                    self._admin.meet(slot, pid, passed)
                else:
                    os.close(passed)
            case Drain():
                self._drain()
            case Forget():
                self._draining.set()
                self._thread("forget", self._forget)
                self._loop.call_later(FORGET_S, self._finish, exits.OK)
            case _:
                raise ValueError(f"the supervisor cannot say {message!r}")

    def _publish(self, snapshot: Snapshot) -> None:
        if self._admin is not None:
            self._admin.view.snapshot = snapshot
        with snapshots.write(snapshot) as file:
            said = self._channel.send(Ring(), file)
        if not said and self._unsaid is None:
            self._loop.call_later(TELL_AGAIN_S, self._publish_unsaid)
        self._unsaid = None if said else snapshot

    def _publish_unsaid(self) -> None:
        if self._unsaid is not None:
            snapshot, self._unsaid = self._unsaid, None
            self._publish(snapshot)

    # Being found.

    def _drain(self) -> None:
        if self._draining.is_set():
            return
        self._draining.set()
        if self._health is not None:
            self._health.ready = False
        if self._admin is not None:
            self._admin.view.draining = True
        self._circle.drain()
        self._thread("leave", self._leave)

    def _left(self) -> None:
        assert self._draining.is_set(), "nobody else is found no more"
        if self._unsaid is not None or not self._channel.send(Left()):
            self._loop.call_later(TELL_AGAIN_S, self._left)

    def _open(self, health: Health, *, is_first: bool = True) -> None:
        try:
            at = health.open()
        except OSError as error:
            if is_first:
                self._log.error("cannot-serve-health", address=health.bind, reason=error.strerror, retry_s=BIND_AGAIN_S)
            self._loop.call_later(BIND_AGAIN_S, lambda: self._open(health, is_first=False))
            return
        assert not health.ready, "it is opened once"
        self._log.info("serving-health", address=at)
        if self._draining.is_set():
            return
        health.ready = True
        if self._registration is not None:
            registration = self._registration(at)
            self._registered = self._thread(
                "register", lambda: registration.keep(self._trouble("registration"), self._draining)
            )

    # In threads of their own.

    def _thread(self, name: str, call: Callable[[], None]) -> threading.Thread:
        """Have something done in one; a bug there is one of the agent, which would else go on without the thread."""

        def do() -> None:
            try:
                call()
            except Exception as error:
                self._soon(self._on_bug, self._loop, {"exception": error})

        return self._machine.thread(name, do)

    def _watch(self) -> None:
        assert self._source is not None, "it is watched"
        watch(
            self._source,
            lambda found: self._soon(self._circle.found, found),
            self._trouble("discovery"),
            self._stopped,
            self._machine.random,
        )

    def _leave(self) -> None:
        """Have all who find the node find it no more."""
        if self._source is not None:
            self._source.leave()
        self._deregister()
        self._soon(self._left)

    def _forget(self) -> None:
        self._deregister()
        self._soon(self._finish, exits.OK)

    def _deregister(self) -> None:
        assert self._draining.is_set(), "else it stays registered"
        if self._registered is not None:
            self._registered.join()

    def _trouble(self, what: str) -> Callable[[str | None], None]:
        def trouble(reason: str | None) -> None:
            if reason is None:
                self._soon(self._log.info, f"{what}-works")
            else:
                self._soon(lambda: self._log.warning(f"{what}-failed", reason=reason))

        return trouble

    def _soon(self, call: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: it is over
            self._loop.call_soon_threadsafe(call, *arguments)
