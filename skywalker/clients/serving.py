"""Answering requests in a thread: one serve() of a blocking client, from its first request to its last answer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from skywalker.clients import rpc
from skywalker.clients.answers import Answers
from skywalker.clients.log import log
from skywalker.clients.requests import MAX_TIMEOUT_S
from skywalker.errors import Cancelled, Closed, SkywalkerError, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.clients.interface import Junction, Pending

STOP_CHECK_S: Final = 0.1
"""Seconds between looks at the event that says to stop, as nothing wakes who waits for a call when it is set."""

ANSWERED_S: Final = 2.0
"""Seconds for the last answers to be delivered: who asked waits for them, or is gone."""


class Serving:
    """One serve(). It takes one request after the other, until it is to finish."""

    def __init__(
        self,
        junction: Junction,
        topic: Any,
        handler: Callable[[Any], Any],
        group: Any,
        timeout: float | None,
        stop: threading.Event | None,
    ) -> None:
        self._junction = junction
        self._topic = topic
        self._handler = handler
        self._group = group
        self._timeout = timeout
        self._stop = stop
        self._is_finishing = False
        self._take: Pending | None = None
        self._answers: Answers[Pending] = Answers(junction._begin)
        self._ended = threading.Event()
        self._thread = threading.get_ident()

    def run(self) -> None:
        """Answer requests until told to finish, or none has come for `timeout` seconds, or the junction is closed."""
        try:
            self._junction._meet_node()
            while (message := self._next()) is not _NOTHING:
                request = rpc.Request.parse(message)
                if request is None:
                    log.warning("a value sent to the served topic %r is not a request", self._topic)
                else:
                    self._answer(request)
            self._deliver()
        except Closed:
            return
        finally:
            self._ended.set()

    def finish(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Take no more requests; any thread may say so. It waits for the node up to `timeout` seconds, not for us."""
        self._is_finishing = True
        take = self._take
        if take is not None and not take.ended:
            with contextlib.suppress(SkywalkerError):  # it goes on then, until the junction is closed
                self._junction.cancel(take, timeout)

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, unless that is asked by its own handler."""
        if self._thread != threading.get_ident():
            self._ended.wait(seconds)

    def _next(self) -> Any:
        """Return the next value that is sent to the topic, _NOTHING if no more are wanted."""
        wait = MAX_TIMEOUT_S if self._timeout is None else self._timeout
        while self._goes_on():
            take = self._take = self._junction._begin("take", (self._topic, self._group), wait)
            if self._is_finishing:
                self.finish()  # whoever said so saw the one before
            try:
                self._watch(take)
                return take.result()
            except Cancelled:
                break
            except TimedOut:
                if self._timeout is not None:
                    break
        return _NOTHING

    def _goes_on(self) -> bool:
        return not (self._is_finishing or (self._stop is not None and self._stop.is_set()))

    def _watch(self, take: Pending) -> None:
        """Wait for a request, or to be told to stop."""
        if self._stop is None:
            return
        while not take.ended:
            self._junction._wait(take, time.monotonic() + STOP_CHECK_S)
            if self._stop.is_set():
                self.finish()

    def _answer(self, request: rpc.Request) -> None:
        will = self._answers.leave_will(request)
        answer = rpc.GONE  # unless the handler ends: an exception that is none of its own ends the serving
        try:
            answer = self._handle(request.value)
        finally:
            with contextlib.suppress(Closed):  # the next take says so
                self._answers.say(request, answer)
                if will is not None:
                    self._junction._abandon(will)

    def _handle(self, value: Any) -> dict[str, Any]:
        try:
            return rpc.success(self._handler(value))
        except Exception as error:
            log.exception("the handler of a request failed")
            return rpc.failure(error)

    def _deliver(self) -> None:
        until = time.monotonic() + ANSWERED_S
        for answer in self._answers.under_way:
            self._junction._wait(answer, until)


_NOTHING: Final[Any] = object()
