"""Nodes that do not want a client: its calls end with that at once, and its secret is told to nobody else."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import skywalker
from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from tests.clients.driving import Place, background
from tests.clients.scripted import Connection, ScriptedNode, error
from tests.helpers import time_factor

SOON = 10.0
SECRET = "skw_s3cret"

MakePlace = Callable[..., Place]


def refuse(connection: Connection, code: str) -> None:
    """Answer a :hello, and what came with it, as a node does that does not want the client."""
    method, id = connection.read()[:2]
    assert method == ":hello"
    connection.write([method, id, error(code, "it is not known who you are")])
    connection.close()


def test_a_client_that_is_not_wanted_is_told_so_as_it_connects(make_place: MakePlace, scripted: ScriptedNode) -> None:
    began = time.monotonic()
    joining = background(lambda: make_place(scripted.address).join(token=SECRET))
    refuse(scripted.next_connection(), "unauthorized")
    with pytest.raises(skywalker.Unauthorized, match="not known who you are") as caught:
        joining.result(SOON * time_factor())
    assert time.monotonic() - began < 2.0 * time_factor()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(("options", "code"), [({"token": SECRET}, "forbidden"), ({}, "unauthorized")])
def test_calls_end_at_once_when_the_next_connection_is_refused(
    make_place: MakePlace, options: dict[str, Any], code: str
) -> None:
    with ScriptedNode(courtesies=False) as scripted:
        joining = background(lambda: make_place(scripted.address).join(**options))
        connection = scripted.next_connection()
        for _ in range(2):
            method, id = connection.read()[:2]
            connection.write([method, id, True])
        junction = joining.result(SOON * time_factor())
        calls = [background(lambda topic=topic: junction.recv(topic, timeout=SOON)) for topic in "ab"]  # type: ignore[misc]
        while connection.read()[0] != ":recv!":
            pass
        began = time.monotonic()
        connection.close()
        refuse(scripted.next_connection(), code)
        for call in calls:
            with pytest.raises(skywalker.RequestError) as caught:
                call.result(SOON * time_factor())
            assert caught.value.code == code
        assert time.monotonic() - began < SOON / 2 * time_factor()


def test_so_they_do_when_the_node_says_it_of_the_connection(make_place: MakePlace, scripted: ScriptedNode) -> None:
    junction = make_place(scripted.address).join()
    call = background(lambda: junction.recv("t", timeout=SOON))
    connection = scripted.next_connection()
    connection.read()
    connection.write([":error", None, error("unauthorized", "say who you are")])
    connection.close()
    with pytest.raises(skywalker.Unauthorized, match="say who you are"):
        call.result(SOON / 2 * time_factor())


def settings(**options: Any) -> Settings:
    return Settings.of(
        "a:3443",
        dialect="current",
        timeout_value=CLOJURE_KEYWORD,
        name=None,
        ack=False,
        max_frame=options.pop("max_frame", 65_535),
        direct=True,
        **options,
    )


@pytest.mark.parametrize("token", [SECRET, SECRET.encode()])
def test_no_text_has_the_secret(token: str | bytes) -> None:
    told = settings(token=token)
    assert told.hello == {"token": token}
    assert SECRET not in f"{told} {told!r}"


@pytest.mark.parametrize("token", [f"{SECRET}\n", f" {SECRET}\r\n", SECRET.encode() + b"\n"])
def test_a_token_may_be_all_that_was_read_of_its_file(token: str | bytes) -> None:
    hello = settings(token=token).hello
    assert hello in ({"token": SECRET}, {"token": SECRET.encode()})


@pytest.mark.parametrize("token", ["", "\n", b" "])
def test_a_token_that_is_empty_is_refused_before_anybody_is_asked(token: str | bytes) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="the token is empty"):
        settings(token=token)


@pytest.mark.parametrize(
    "options",
    [
        {"token": SECRET * 100, "max_frame": 100},
        {"token": SECRET + "\ud800", "tls": "no"},
        {"token": [SECRET]},
        {"token": {SECRET: object()}},
    ],
)
def test_an_error_about_the_secret_does_not_have_it(options: dict[str, Any]) -> None:
    with pytest.raises((skywalker.LocalProtocolError, skywalker.TooLarge)) as caught:
        settings(**options)
    assert SECRET not in str(caught.value)


def test_what_answers_a_question_in_no_way_that_a_node_does_is_said_to(
    make_place: MakePlace, scripted: ScriptedNode
) -> None:
    junction = make_place(scripted.address).join()
    connection = scripted.next_connection()
    for ask in (junction.tokens, lambda: junction.topic("t")):
        asked = background(ask)
        method, id, *_ = connection.read()
        connection.write([method, id, None])
        with pytest.raises(skywalker.RemoteProtocolError, match=f"not one to {method}"):
            asked.result(SOON * time_factor())
