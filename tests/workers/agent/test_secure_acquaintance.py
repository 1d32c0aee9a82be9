"""A node's agent and another node, of which one may not be let in by the other: what the agent reports of that."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from skywalker.discovery.roster import NO_TLS as NO_TLS_THERE
from skywalker.discovery.roster import NOT_LET_IN
from skywalker.errors import Busy, ConfigError, Forbidden, RequestError, Unauthorized
from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.words import CLOSED, NO_TLS, SILENT
from skywalker.wire import junction as wire
from tests.authority import Authority
from tests.helpers import time_factor
from tests.workers.agent.reports import report
from tests.workers.dialled import HOST, Dialled, closes, says_nothing, speaks_plainly
from tests.workers.told_node import ToldNode
from workers.agent import acquaintance


class Answering(ToldNode):
    """One that answers a :peer so, if it does."""

    peer = b""

    def _answer(self, message: list[Any]) -> bytes:
        return self.peer if message[0] == ":peer" else super()._answer(message)


@pytest.fixture
def ours(authority: Authority) -> Callable[[], ssl.SSLContext]:
    cert, key = authority.sign(HOST)
    return lambda: client_context(authority.ca, cert, key)


@pytest.mark.parametrize(("behave", "words"), [(says_nothing, SILENT), (closes, CLOSED), (speaks_plainly, NO_TLS)])
def test_what_is_no_tls_is_called_so(
    ours: Callable[[], ssl.SSLContext],
    behave: Callable[[socket.socket], None],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acquaintance, "HANDSHAKE_S", 0.3 * time_factor())
    with Dialled(behave) as dialled:
        assert report(dialled.member.address, tls=ours).ends == [(NO_TLS_THERE, words)]


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("name", "its certificate is for other names"),
        ("authority", "its certificate is of no authority that is trusted here"),
        ("trust", "our certificate is of an authority that it does not trust"),
    ],
)
def test_it_is_reported_which_certificate_is_wrong(
    authority: Authority, stranger: Authority, ours: Callable[[], ssl.SSLContext], flaw: str, words: str
) -> None:
    cert, key = (stranger if flaw == "authority" else authority).sign("another.example" if flaw == "name" else HOST)
    context = server_context(cert, key, (stranger if flaw == "trust" else authority).ca, required=True)
    with Dialled(says_nothing, context) as dialled:
        [(what, reason)] = report(dialled.member.address, tls=ours).ends
    assert what == NO_TLS_THERE
    assert reason.startswith(words)


def test_a_certificate_of_ours_that_cannot_be_read_is_reported() -> None:
    def broken() -> ssl.SSLContext:
        raise ConfigError("cert.pem holds no certificate")

    with Dialled(says_nothing) as dialled:
        assert report(dialled.member.address, tls=broken).ends == [(NO_TLS_THERE, "cert.pem holds no certificate")]


@pytest.mark.parametrize("refusal", [Unauthorized("who is calling?"), Forbidden("a web is none", {"missing": "node"})])
def test_one_that_takes_us_for_no_node_is_not_greeted(refusal: RequestError) -> None:
    told = Answering()
    told.peer = wire.error_frame(wire.PEER, b"\5", refusal)
    with told:
        reports = report(told.address)
    assert reports.ends == [(NOT_LET_IN, f"it said: {refusal}")]
    assert not reports.greetings


@pytest.mark.parametrize("refusal", [None, Busy("not now"), Forbidden("no")])
def test_one_that_says_nothing_of_it_or_another_thing_is_greeted(refusal: RequestError | None) -> None:
    told = Answering()
    if refusal is not None:
        told.peer = wire.error_frame(wire.PEER, b"\5", refusal)
    with told:
        reports = report(told.address)
    assert len(reports.greetings) == 1
    assert not reports.ends
