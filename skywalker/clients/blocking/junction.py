# Made by 'make faces' from skywalker/clients/aio/junction.py; do not edit.

"""The Junction interface: what every client can do, in process or over a network.

Threads may share one. Timeouts are seconds, from 0 ("is anyone there now?") to 86,400.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Self, TypeVar

from skywalker.clients import fork_check, rpc
from skywalker.clients.blocking.driver import Driver, Pending
from skywalker.clients.blocking.host import Handler
from skywalker.clients.blocking.serving import Serving
from skywalker.clients.blocking.sharded import Sharded
from skywalker.clients.call import RAISE, Raise, meeting_arguments
from skywalker.clients.requests import MAX_TIMEOUT_S, MeetingKind, milliseconds
from skywalker.clients.survey import Pages
from skywalker.errors import Closed, NoReply, OutcomeUnknown, SkywalkerError, TimedOut, Unauthorized, Unreachable
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S

T = TypeVar("T")


class Junction:
    """Where blocking code meets on topics. Close it, or use it in a `with` statement."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._servings: set[Serving] = set()  # those that go on

    # Meetings.

    def send(self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S, default: T | Raise = RAISE) -> bool | T:
        """Give `value` to every receiver that waits on `topic`, and to one taker of each group.

        With none there, wait for the first. Returns True once somebody has it. If nobody comes
        in time, returns `default`, or raises TimedOut if none is given. Raises OutcomeUnknown, whatever the default,
        if somebody may have it, and it cannot be known whether anybody has.
        """
        call = self._driver.meet("send", (topic, value), timeout)
        outcome = call.outcome(default)
        return outcome if call.error else outcome is True

    def recv(self, topic: Any, timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """Return the next value sent to `topic`, the oldest that waits if any does.

        If none comes in time, returns `default`, or raises TimedOut if none is given.
        """
        call = self._driver.meet("recv", (topic,), timeout)
        return call.outcome(default)

    def take(self, topic: Any, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """As recv(), but of all that take from `topic` in one `group`, only one gets each value."""
        call = self._driver.meet("take", (topic, group), timeout)
        return call.outcome(default)

    def begin(
        self, kind: MeetingKind, topic: Any, value: Any = RAISE, *, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S
    ) -> Pending:
        """Start a call and do not wait for its outcome. `value` goes with "send", and `group` with "take"."""
        return self._driver.begin(kind, meeting_arguments(kind, topic, value, group), timeout)

    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Cancel a call; its result() then raises Cancelled. Returns whether it still waited.

        That is what becomes of it. Of a send that somebody may just have, the node may only know it
        at the end of the call's own time. Raises TimedOut if it is not known within `timeout`.
        """
        return self._driver.cancel(call, timeout)

    def values(self, topic: Any, group: Any = None, timeout: float | None = None) -> Iterator[Any]:
        """Iterate over the values sent to `topic`, taken in `group` if one is given.

        One call at a time is under way, and only while the next value is waited for; so what
        is sent meanwhile waits for it. Ends once no value has come for `timeout` seconds.
        """
        while True:
            wait = MAX_TIMEOUT_S if timeout is None else timeout
            try:
                value = self.recv(topic, wait) if group is None else self.take(topic, group, wait)
            except TimedOut:
                if timeout is None:
                    continue
                return
            yield value

    def sharded(self, topic: str, shards: int, group: Any = "") -> Sharded:
        """Return a hot topic as so many topics, whose names are `topic`/0 and so on; takers are in one `group`.

        All who share the topic must name the same number.
        """
        return Sharded(self._driver, topic, shards, group)

    # Requests.

    def request(self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S) -> Any:
        """Return what the handler that serves `topic` returns for `value`.

        Raises TimedOut if nobody takes the request up in time, NoReply if somebody does, or may have, and does not
        answer in time, or is gone before, and HandlerFailed if the handler raised.
        """
        reply_topic = rpc.private_topic(self._driver.machine)
        answer = self._driver.begin("recv", (reply_topic,), timeout)
        try:
            trouble: SkywalkerError | None = None
            try:
                self.send(topic, rpc.request(reply_topic, value, timeout), timeout)
            except OutcomeUnknown as error:
                trouble = error  # if somebody has it, the answer comes
            try:
                return rpc.result(topic, answer.result())
            except NoReply:
                raise
            except TimedOut:
                raise rpc.unanswered(topic, timeout, trouble) from trouble
            except (Unreachable, Unauthorized) as error:  # which would say that nobody has it
                trouble = trouble or error
                raise rpc.unanswered(topic, timeout, trouble) from trouble
        finally:
            self._driver.abandon(answer)

    def serve(
        self,
        topic: Any,
        handler: Handler,
        *,
        group: Any = "",
        timeout: float | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Answer requests on `topic` with what `handler` returns, until `stop` is set or this junction is closed.

        Each request goes to one of those that serve the topic in the same group; one of them handles one at a time.
        An exception of the handler is raised as HandlerFailed at the other side. Ends also once no request has
        come for `timeout` seconds. Once `stop` is set nothing more is taken up; a handler that runs
        goes on, and serve() returns when its answer is delivered.
        """
        serving = Serving(self._driver, topic, handler, group, timeout, stop)
        self._servings.add(serving)
        try:
            with contextlib.suppress(Closed):
                self._meet_node()
                serving.run()
        finally:
            serving.end()
            self._servings.discard(serving)

    # The node.

    def tokens(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[int]:
        """Return the sorted tokens of the node, signed 64-bit."""
        call = self._driver.meet("tokens", (), timeout)
        return call.answer(list)

    def topic(self, topic: Any, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return who waits on `topic`: receivers, takers by group, senders, and the age of the oldest."""
        call = self._driver.meet("topic", (topic,), timeout)
        return call.answer(dict)

    def ping(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Return True once the node has answered."""
        call = self._driver.meet("ping", (), timeout)
        return call.outcome() is True

    def hello(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return what the node says of itself.

        Empty if the answer is not a map, as from some original nodes. Raises UnknownMethod if the node refuses the
        question.
        """
        call = self._driver.meet("hello", ({},), timeout)
        answer = call.outcome()
        return answer if isinstance(answer, dict) else {}

    def nodes(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[dict[Any, Any]]:
        """Return the nodes of the cluster as the node sees them, in the order of their ids.

        Of each its id, name, address, port, workers, steering and tokens.
        """
        milliseconds(timeout)
        pages = Pages()
        deadline = self._driver.now() + timeout
        while pages.question is not None:
            left = deadline - self._driver.now()
            if left < 0 and pages.nodes:
                raise TimedOut(f"the node did not tell all nodes within {timeout:g} s")
            call = self._driver.meet("nodes", pages.question, max(0.0, left))
            pages.add(call.outcome())
        return pages.nodes

    def _meet_node(self) -> None:
        """Have it be known what the node can do, if there is one."""

    # Life.

    def close(self, drain: float = 0.0) -> None:
        """End every call under way with Closed. What is called later raises Closed too.

        Before that, each serve() is told to stop, and has `drain` seconds for the handler that runs to end and its
        answer to be delivered.
        """
        if milliseconds(drain):
            self._finish_serving(self._driver.now() + drain)
        self._driver.close()

    def _finish_serving(self, until: float) -> None:
        servings = [serving for serving in [*self._servings] if serving.pid == fork_check.pid()]
        for serving in servings:
            serving.finish(max(0.0, until - self._driver.now()))
        for serving in servings:
            serving.wait(until)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class LocalJunction(Junction):
    """Behaves as a client of a node that only this object can reach.

    For tests, and for programs that need no node yet.
    """

    def __init__(self) -> None:
        from skywalker.clients.bus import Bus  # only now: a client of a node needs none of it

        super().__init__(Driver(Bus()))
