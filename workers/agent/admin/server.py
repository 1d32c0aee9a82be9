"""The admin server: a thread of the agent with a loop of its own, where all of this package runs."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

import uvicorn

from skywalker.access.access import Access
from skywalker.address import Address
from skywalker.errors import ConfigError
from skywalker.members import Member, Snapshot
from workers.access.refusals import Refusals
from workers.agent.admin import app
from workers.agent.admin.processes import Processes
from workers.agent.admin.questions import Questions
from workers.agent.admin.samples import Samples
from workers.agent.admin.transport import IDLE_S, Bounded
from workers.agent.admin.view import View
from workers.agent.ping import Ping
from workers.engine.sockets import ADMIN_BACKLOG, AddressError, admin_listener, tune
from workers.stats.log import Log
from workers.stats.shared import SharedCounters

BIND_AGAIN_S: Final = 1.0
"""Seconds until the next try for a port that another has."""


class Admin:
    """Serves from start() until the process ends. `view` is for the agent to keep up to date."""

    def __init__(
        self,
        bind: tuple[str, int],
        listener: socket.socket | None,
        me: Member,
        ping: Ping,
        doors: Mapping[str, str],
        shared: SharedCounters,
        log: Log,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        access: Access | None = None,
    ) -> None:
        """Without a `listener` it makes one at `bind`, once that can be had. `ping` finds out whether the node is well.

        With `tls`, which returns how to speak that now, nothing else is spoken; with `access` only those are answered
        who may see it all.
        """
        self.view = View(me, doors, Snapshot([me]), ping)
        self._bind = bind
        self._listener = listener
        self._shared = shared
        self._tls = tls
        self._access = access
        self._log = log.bind()  # one of its own, since it writes from its own thread
        self._loop = asyncio.new_event_loop()
        self._questions = Questions()

    def start(self, failed: Callable[[], None]) -> None:
        """Begin, in a thread that keeps no process from ending; it calls `failed` if it ends, which is a bug."""
        threading.Thread(target=self._run, args=(failed,), name="admin", daemon=True).start()

    def meet(self, slot: int, pid: int, fd: int) -> None:
        """Ask the worker of that slot and pid over the socket `fd` from now on."""
        sock = socket.socket(fileno=fd)
        self._loop.call_soon_threadsafe(lambda: self._questions.meet(slot, pid, sock))

    def _run(self, failed: Callable[[], None]) -> None:
        self._loop.set_exception_handler(self._on_bug)
        try:
            self._loop.run_until_complete(self._run_all())
        except BaseException:
            self._log.error("bug", trace=traceback.format_exc())
        failed()

    async def _run_all(self) -> None:
        """Take samples and serve them: neither is of use without the other."""
        samples = Samples(self._shared, self.view, Processes())
        async with asyncio.TaskGroup() as group:
            group.create_task(samples.run(self._log))
            group.create_task(self._serve(samples))

    async def _serve(self, samples: Samples) -> None:
        refusals = Refusals(self._log.warning, "admin-refused", self._loop.time)
        name = self._bind[0] if self._tls is None else None
        logger = logging.getLogger("uvicorn")
        logger.addHandler(_ToLog(self._log))
        logger.propagate = False
        settings = uvicorn.Config(
            app.make(self.view, self._shared, samples, self._questions, name, self._access, refusals),
            loop="none",
            http=functools.partial(Bounded, tls=self._tls),  # type: ignore[arg-type]  # whatever makes one will do
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=ADMIN_BACKLOG,
            timeout_keep_alive=int(IDLE_S),
        )
        listener = await self._listening()
        self._log.info("serving-admin", address=Address(*listener.getsockname()[:2]))
        await uvicorn.Server(settings).serve(sockets=[listener])
        raise RuntimeError("the server ended")

    async def _listening(self) -> socket.socket:
        """Return the listener; one that cannot be had now is waited for, and so is a certificate to show there."""
        said = False
        while True:
            try:
                if self._tls is not None:
                    self._tls()  # from now on it always has one
                listener = self._listener or admin_listener(*self._bind)
                break
            except (AddressError, ConfigError) as error:
                if not said:
                    self._log.warning("cannot-serve-admin", reason=error, retry_s=BIND_AGAIN_S)
                said = True
                await asyncio.sleep(BIND_AGAIN_S)
        tune(listener)  # asyncio itself would only do that for sockets that were made in another way
        return listener

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError):
            self._log.warning("admin-trouble", reason=error.strerror or error)
            return
        trace = "".join(traceback.format_exception(error)) if error else context["message"]
        self._log.error("bug", trace=trace)


class _ToLog(logging.Handler):
    """Has what uvicorn calls an error said as all others are."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        self._log.error("bug", trace=self.format(record))
