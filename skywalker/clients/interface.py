"""The Junction interface: what every blocking client can do, in process or over a network.

Threads may share one. Its twin for asyncio is `aio_interface.AsyncJunction`: the same
names, to be awaited. Timeouts are seconds, from 0 ("is anyone there now?") to 86,400.
"""

from __future__ import annotations

import abc
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Self, TypeVar

from skywalker.clients import rpc
from skywalker.clients.call import Call
from skywalker.clients.pages import Pages
from skywalker.clients.requests import MAX_TIMEOUT_S, Kind, MeetingKind
from skywalker.clients.serving import Serving
from skywalker.errors import LocalProtocolError, NoReply, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S

T = TypeVar("T")


class Raise:
    """The type of RAISE, the `default` that stands for none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "RAISE"


RAISE: Final = Raise()


class Pending(Call):
    """A call under way, as begin() returns it."""

    __slots__ = ("_junction",)

    def __init__(self, junction: Junction) -> None:
        super().__init__()
        self._junction = junction

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended or self._junction._poll(self)

    def result(self) -> Any:
        """Wait for the outcome and return it.

        Raises TimedOut, Unreachable, Closed, Cancelled, or what the node refused the call with.
        An exception that interrupts the waiting, such as KeyboardInterrupt, cancels the call.
        """
        if not self.ended:
            self._junction._wait(self)
        if self.error is not None:
            raise self.error
        return self.value


class Junction(abc.ABC):
    """Where blocking code meets on topics. Close it, or use it in a `with` statement."""

    # Meetings.

    def send(self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S, default: T | Raise = RAISE) -> bool | T:
        """Give `value` to every receiver that waits on `topic`, and to one taker of each group.

        With none there, wait for the first. Returns True once somebody has it. If nobody comes
        in time, returns `default`, or raises TimedOut if none is given.
        """
        call = self._begin("send", (topic, value), timeout)
        outcome = _outcome(call, default)
        return outcome if call.error else outcome is True

    def recv(self, topic: Any, timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """Return the next value sent to `topic`, the oldest that waits if any does.

        If none comes in time, returns `default`, or raises TimedOut if none is given.
        """
        return _outcome(self._begin("recv", (topic,), timeout), default)

    def take(self, topic: Any, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """As recv(), but of all that take from `topic` in one `group`, only one gets each value."""
        return _outcome(self._begin("take", (topic, group), timeout), default)

    def begin(
        self, kind: MeetingKind, topic: Any, value: Any = RAISE, *, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S
    ) -> Pending:
        """Start a call and return at once. `value` goes with "send", and `group` with "take"."""
        return self._begin(kind, meeting_arguments(kind, topic, value, group), timeout)

    @abc.abstractmethod
    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Cancel a call; its result() then raises Cancelled. Returns whether it still waited.

        That is what becomes of it. Of a send that somebody may just have, the node may only know it
        at the end of the call's own time. Raises TimedOut if it is not known within `timeout`.
        """

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

    # Requests.

    def request(self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S) -> Any:
        """Return what the handler that serves `topic` returns for `value`.

        Raises TimedOut if nobody takes the request up in time, NoReply if somebody does and does not answer in time,
        or is gone before, and HandlerFailed if the handler raised.
        """
        reply_topic = rpc.private_topic()
        answer = self._begin("recv", (reply_topic,), timeout)
        try:
            self.send(topic, rpc.request(reply_topic, value, timeout), timeout)
            try:
                return rpc.result(topic, answer.result())
            except TimedOut as error:
                raise error if isinstance(error, NoReply) else rpc.unanswered(topic, timeout) from None
        finally:
            self._abandon(answer)

    def serve(
        self,
        topic: Any,
        handler: Callable[[Any], Any],
        *,
        group: Any = "",
        timeout: float | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Answer requests on `topic` with what `handler` returns, until `stop` is set or this junction is closed.

        Each request goes to one of those that serve the topic in the same group. An exception of
        the handler is raised as HandlerFailed at the other side. Ends also once no request has
        come for `timeout` seconds. Once `stop` is set nothing more is taken up; a handler that runs
        goes on, and serve() returns when its answer is delivered.
        """
        serving = Serving(self, topic, handler, group, timeout, stop)
        self._servings.add(serving)
        try:
            serving.run()
        finally:
            self._servings.discard(serving)

    # The node.

    def tokens(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[int]:
        """Return the sorted tokens of the node, signed 64-bit."""
        return list(self._begin("tokens", (), timeout).result())

    def topic(self, topic: Any, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return who waits on `topic`: receivers, takers by group, senders, and the age of the oldest."""
        return dict(self._begin("topic", (topic,), timeout).result())

    def ping(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Return True once the node has answered."""
        return self._begin("ping", (), timeout).result() is True

    def hello(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return what the node says of itself. Empty if it does not know the question, as an original one."""
        return greeting(self._begin("hello", ({},), timeout).result())

    def nodes(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[dict[Any, Any]]:
        """Return the nodes of the cluster as the node sees them, in the order of their ids.

        Of each its id, name, address, port, workers, steering and tokens.
        """
        pages = Pages()
        deadline = time.monotonic() + timeout
        while pages.question is not None:
            left = deadline - time.monotonic()
            if left < 0 and pages.nodes:
                raise TimedOut(f"the node did not tell all nodes within {timeout:g} s")
            pages.add(self._begin("nodes", pages.question, max(0.0, left)).result())
        return pages.nodes

    # Life.

    @abc.abstractmethod
    def close(self, drain: float = 0.0) -> None:
        """End every call under way with Closed. What is called later raises Closed too.

        Before that, each serve() is told to stop, and has `drain` seconds for the handler that runs to end and its
        answer to be delivered.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # What the implementations differ in.

    _servings: set[Serving]
    """Those that go on."""

    @abc.abstractmethod
    def _meet_node(self) -> None:
        """Have it be known what the node can do."""

    @abc.abstractmethod
    def _begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call."""

    @abc.abstractmethod
    def _wait(self, call: Pending, until: float = math.inf) -> None:
        """Return once `call` has ended, or the time is `until`; abandon it if interrupted."""

    @abc.abstractmethod
    def _poll(self, call: Pending) -> bool:
        """Return whether `call` has ended by now, without waiting."""

    @abc.abstractmethod
    def _abandon(self, call: Pending) -> None:
        """End `call`, unless it has ended, because nobody wants its outcome."""


def meeting_arguments(kind: MeetingKind, topic: Any, value: Any, group: Any) -> tuple[Any, ...]:
    """Return the arguments of a call as begin() was given them. Raises LocalProtocolError if they do not fit."""
    if (kind == "send") == (value is RAISE):
        raise LocalProtocolError(f"a value goes with 'send', and only with it; the call is {kind!r}")
    match kind:
        case "send":
            return (topic, value)
        case "recv":
            return (topic,)
        case "take":
            return (topic, group)
    raise LocalProtocolError(f"kind {kind!r} is none of 'send', 'recv' and 'take'")


def greeting(answer: Any) -> dict[Any, Any]:
    """Return the answer to a :hello as a map, an empty one if it is none."""
    return answer if isinstance(answer, dict) else {}


def _outcome(call: Pending, default: Any) -> Any:
    """Wait for a meeting and return its result; if nobody came in time, `default`, unless that is RAISE."""
    try:
        return call.result()
    except TimedOut:
        if default is RAISE:
            raise
        return default
