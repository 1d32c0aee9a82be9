# Made by 'make faces' from skywalker/clients/aio/serving.py; do not edit.

"""Answering requests: one serve(), from its first request to its last answer."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Final

from skywalker.clients import fork_check, rpc
from skywalker.clients.blocking.driver import Driver, Pending
from skywalker.clients.blocking.host import Handler, Host
from skywalker.clients.news import log
from skywalker.clients.requests import MAX_TIMEOUT_S
from skywalker.errors import (
    Cancelled,
    Closed,
    LocalProtocolError,
    RemoteProtocolError,
    SkywalkerError,
    TimedOut,
    TooLarge,
)
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

ANSWERED_S: Final = 2.0
"""Seconds for the last answers to be delivered: who asked waits for them, or is gone."""


class Serving:
    """One serve(). It takes one request after the other, until it is to finish."""

    def __init__(
        self,
        driver: Driver,
        topic: Any,
        handler: Handler,
        group: Any,
        timeout: float | None,
        stop: threading.Event | None,
    ) -> None:
        self.pid = fork_check.pid()  # where it goes on: not in the copy that a fork makes
        self._driver = driver
        self._topic = topic
        self._handler = handler
        self._group = group
        self._timeout = timeout
        self._stop = stop
        self._is_finishing = False
        self._take: Pending | None = None
        self._answers: list[Pending] = []  # that are under way
        self._host = Host(driver, stop, self.finish)

    def run(self) -> None:
        """Answer requests until told to finish, or none has come for `timeout` seconds. Raises Closed."""
        while (message := self._next()) is not _NOTHING:
            request = rpc.Request.parse(message)
            if request is None:
                log.warning("a value sent to the served topic %r is not a request", self._topic)
            else:
                self._serve(request)
        until = self._driver.now() + ANSWERED_S
        for answer in self._answers:
            self._driver.wait(answer, until)

    def finish(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Take no more requests; anybody may say so. It waits for the node up to `timeout` seconds, not for us."""
        self._is_finishing = True
        take = self._take
        if take is not None and not take.ended:
            with contextlib.suppress(SkywalkerError):  # it goes on then, until the junction is closed
                self._driver.cancel(take, timeout)

    def end(self) -> None:
        """Say that it has ended."""
        self._host.end()

    def wait(self, until: float) -> None:
        """Wait until it has ended, or the time is `until`, unless that is asked by its own handler."""
        self._host.wait(until)

    def _next(self) -> Any:
        """Return the next value that is sent to the topic, _NOTHING if no more are wanted."""
        wait = MAX_TIMEOUT_S if self._timeout is None else self._timeout
        while self._goes_on():
            take = self._take = self._driver.begin("take", (self._topic, self._group), wait)
            take.drops = True  # it would only be met again by the next take, here or at another server
            if self._is_finishing:
                self.finish()  # whoever said so saw the one before
            try:
                self._host.watch(take)
                return take.result()
            except RemoteProtocolError as error:
                log.warning("a request to %r is dropped: %s", self._topic, error)
            except Cancelled:
                break
            except TimedOut:
                if self._timeout is not None:
                    break
        return _NOTHING

    def _goes_on(self) -> bool:
        return not (self._is_finishing or (self._stop is not None and self._stop.is_set()))

    def _serve(self, request: rpc.Request) -> None:
        will = self._leave_will(request)
        answer = rpc.GONE  # unless the handler ends: an exception that is none of its own ends the serving
        try:
            answer = self._handle(request.value, will)
        finally:
            with contextlib.suppress(Closed):  # the next take says so
                self._answer(request, answer)
                if will is not None:
                    self._driver.abandon(will)
        if self._answers:
            self._driver.wait_for_room(self._answers[-1])

    def _leave_will(self, request: rpc.Request) -> Pending | None:
        """Have the node tell who asked if we are lost before we answer."""
        try:
            return self._driver.issue("will", (request.reply_topic, rpc.GONE), request.timeout)
        except (LocalProtocolError, TooLarge):
            return None  # max_frame is small

    def _handle(self, value: Any, will: Pending | None) -> dict[str, Any]:
        if will is not None:
            self._driver.wait_until_written(will)  # the handler may take long
        try:
            return rpc.success(self._host.run(self._handler, value))
        except Exception as error:
            log.exception("the handler of a request failed")
            return rpc.failure(error)

    def _answer(self, request: rpc.Request, answer: dict[str, Any]) -> None:
        """Answer a request. Whoever asked may be gone, which is not the handler's business."""
        self._answers = [each for each in self._answers if not each.ended]
        try:
            self._answers.append(self._issue(request, answer))
        except (LocalProtocolError, TooLarge) as error:
            try:
                self._answers.append(self._issue(request, rpc.failure(error)))
            except (LocalProtocolError, TooLarge):
                log.warning("no answer at all fits in a frame with the reply topic of a request to %r", self._topic)

    def _issue(self, request: rpc.Request, answer: dict[str, Any]) -> Pending:
        return self._driver.issue("send", (request.reply_topic, answer), request.timeout)


_NOTHING: Final[Any] = object()
