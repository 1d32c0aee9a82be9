"""The answer to :nodes, in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import skywalker
from skywalker.clients.survey import Pages
from tests.clients.driving import Place, background
from tests.clients.scripted import ScriptedNode
from tests.helpers import time_factor

SOON = 10.0

MakePlace = Callable[[str | None], Place]


def page(version: str, ids: str, more: bool) -> dict[str, Any]:
    return {"version": version, "nodes": [{"id": id} for id in ids], "more": more}


def ids(pages: Pages) -> str:
    return "".join(node["id"] for node in pages.nodes)


def test_each_page_begins_after_the_last_id_of_the_one_before() -> None:
    pages = Pages()
    assert pages.question == ()
    pages.add(page("v", "ab", True))
    assert pages.question == ("b",)
    pages.add(page("v", "c", False))
    assert pages.question is None
    assert (ids(pages), pages.version) == ("abc", "v")


def test_pages_of_two_versions_are_no_answer_so_it_is_asked_again() -> None:
    pages = Pages()
    pages.add(page("v", "ab", True))
    pages.add(page("w", "d", False))
    assert pages.question == ()
    pages.add(page("w", "bd", False))
    assert pages.question is None
    assert (ids(pages), pages.version) == ("bd", "w")


@pytest.mark.parametrize(
    "answer",
    [
        None, True, [], {}, {"version": 1, "nodes": [], "more": False}, {"version": "v", "nodes": {}, "more": False},
        {"version": "v", "nodes": [1], "more": False}, {"version": "v", "nodes": [{"id": 1}], "more": False},
        page("v", "", True),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_page_is_said_to_be_none(answer: Any) -> None:
    with pytest.raises(skywalker.RemoteProtocolError):
        Pages().add(answer)


def test_a_client_asks_for_all_pages(make_place: MakePlace, scripted: ScriptedNode) -> None:
    junction = make_place(scripted.address).join()
    told = background(junction.nodes)
    connection = scripted.next_connection()
    for question, answer in (([], page("v", "ab", True)), (["b"], page("v", "c", False))):
        method, id, *arguments = connection.read()
        assert (method, arguments) == (":nodes", question)
        connection.write([":nodes", id, answer])
    assert told.result(SOON * time_factor()) == [{"id": "a"}, {"id": "b"}, {"id": "c"}]
