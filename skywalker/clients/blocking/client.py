# Made by 'make faces' from skywalker/clients/aio/client.py; do not edit.

"""The client of a node or a cluster, and how it comes to be."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from skywalker.clients.blocking.junction import Junction
from skywalker.clients.blocking.line_driver import LineDriver
from skywalker.clients.calls import Calls
from skywalker.clients.news import Herald, OnConnect, OnDisconnect
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, MEET_S, Dialect, Settings, check_patience
from skywalker.clients.wrong_door import ANSWER_S, LOOK_S, SILENT, what_is_at
from skywalker.errors import RequestError, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME

if TYPE_CHECKING:
    import ssl


def connect(
    where: str = DEFAULT_ADDRESS,
    *,
    dialect: Dialect = "current",
    timeout_value: Any = CLOJURE_KEYWORD,
    name: str | None = None,
    ack: bool = False,
    token: str | bytes | None = None,
    tls: ssl.SSLContext | bool | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    max_frame: int = MAX_FRAME,
    direct: bool = True,
    resend: bool = True,
    on_connect: OnConnect | None = None,
    on_disconnect: OnDisconnect | None = None,
    timeout: None = None,
) -> Client:
    """Connect to a node, or to a cluster, and return a client that threads may share.

    `where` is "host:port" or "unix:///path", or for a cluster "host:port,host:port", "silk://host:3444,host:3444",
    "dns://name:3443", "dns://_service._tcp.name" or "consul://host:8500/service". "skywalkers://host:port,host:port"
    is spoken with by TLS, and so is any other but unix:// if `tls` is True or a context, such as
    skywalker.tls.contexts.client_context() returns; True, and what skywalkers:// means by itself, is that of the
    authorities that this machine trusts. A node's certificate must have the host that is dialled, often a numeric one.

    With `ack` the sender of a value hears True only when this client has it. `name` and `token`, a secret,
    are told to the node. With dialect "first", `timeout_value` names a timed-out call on the wire.
    Frames over `max_frame` bytes are refused. Without `resend`, a send that was written to a connection which is lost
    then is not made again, but raises OutcomeUnknown. `on_connect` is called with the address whenever there is a
    connection, and `on_disconnect` with the address and the cause when it is lost. Raises Unreachable if no node
    answers within `connect_timeout` seconds, LocalProtocolError for an argument that is not allowed, DiscoveryError
    if a library is missing that asks what `where` names.
    """
    settings = Settings.of(
        where,
        dialect=dialect,
        timeout_value=timeout_value,
        name=name,
        ack=ack,
        token=token,
        tls=tls,
        max_frame=max_frame,
        direct=direct,
        resend=resend,
    )
    check_patience(connect_timeout, timeout)
    client = Client(settings, Herald(on_connect, on_disconnect))
    try:
        client.open(connect_timeout)
    except BaseException:
        client.close()
        raise
    return client


class Client(Junction):
    """A client of a node or a cluster. Made by connect()."""

    _driver: LineDriver[Calls]

    def __init__(self, settings: Settings, herald: Herald) -> None:
        super().__init__(LineDriver(lambda: Calls(settings), settings, herald))
        self._settings = settings

    def __repr__(self) -> str:
        state = "closed" if self._driver.is_closed else self._driver.core.state
        return f"<skywalker.Client of {self._settings.where}, {state}>"

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        driver = self._driver
        deadline = driver.now() + timeout
        driver.open(deadline)
        if self._settings.is_plain:
            self._see_that_it_is_a_node(deadline)
        elif self._settings.hello is not None:
            self._see_that_it_answers(deadline)

    def _see_that_it_answers(self, deadline: float) -> None:
        driver = self._driver
        question = driver.issue("ping", (), max(0.0, deadline - driver.now()))
        driver.wait(question, deadline)  # and no longer, as a call would
        silence = Unreachable(f"the node at {driver.address} does not answer :hello")
        if not question.ended:
            driver.abandon(question)
            raise silence
        try:
            question.outcome()
        except TimedOut:
            raise silence from None

    def _see_that_it_is_a_node(self, deadline: float) -> None:
        driver = self._driver
        question = driver.issue("tokens", (), max(0.0, deadline - driver.now()))  # which original nodes know, too
        last_look = deadline - min(LOOK_S, (deadline - driver.now()) / 2)
        what = ""
        try:
            while not driver.core.has_answered(question):
                now = driver.now()
                driver.wait(question, min(now + ANSWER_S, last_look if now < last_look else deadline))
                if driver.core.has_answered(question):
                    return
                left = deadline - driver.now()
                if left <= 0:
                    raise self._no_node(what) if what else driver.core.unreachable(driver.cause)
                what = ""
                if driver.address is not None:
                    what = driver.aside(what_is_at, driver.address, self._settings.tls, min(LOOK_S, left))
                if what and what != SILENT:
                    raise self._no_node(what)
        finally:
            driver.abandon(question)

    def _no_node(self, what: str) -> Unreachable:
        return Unreachable(f"no node at {self._settings.where}: {what}")

    def _meet_node(self) -> None:
        if not self._settings.timeout_value and self._driver.core.main.greeting is None:
            with contextlib.suppress(TimedOut, Unreachable, RequestError):
                self.hello(MEET_S)
