"""Every client greets every node, so that its errors reach the program; and does without where that is in vain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from tests.clients.driving import Place

SOON = 10.0

MakePlace = Callable[..., Place]


ANYONE = """
[access.anyone]
send = ["mine"]
recv = ["mine"]
"""
SOMEBODY = f"""
[access.web]
token = "{token.hash_of(token.new())}"
send = ["*"]
"""


@contextlib.contextmanager
def node_with(directory: Path, tables: str, **settings: Any) -> Iterator[str]:
    """Yield the address of a node that refuses much."""
    file = directory / "node.toml"
    file.write_text(tables)
    with skywalker.embedded(config_file=file, **settings) as node:
        yield node.address


def test_the_errors_of_a_node_reach_programs_that_give_but_its_address(make_place: MakePlace, tmp_path: Path) -> None:
    with node_with(tmp_path, ANYONE, waiting_bytes=10_000, max_plain_reply=100) as address:
        junction = make_place(address).join()
        refused: dict[type[skywalker.RequestError], Callable[[], Any]] = {
            skywalker.Forbidden: lambda: junction.send("theirs", 1, timeout=SOON),
            skywalker.BadTopic: lambda: junction.recv("t" * 5_000, timeout=SOON),
            skywalker.Busy: lambda: junction.send("mine", "x" * 20_000, timeout=SOON),
        }
        for error, ask in refused.items():
            with pytest.raises(error):
                ask()
        waits = junction.begin("recv", "mine", timeout=SOON)
        junction.topic("mine")
        assert junction.send("mine", "x" * 5_000, timeout=SOON), "a plain client would get less"
        assert len(waits.result()) == 5_000


def test_so_does_that_it_is_not_known_who_calls(make_place: MakePlace, tmp_path: Path) -> None:
    with node_with(tmp_path, SOMEBODY) as address, pytest.raises(skywalker.Unauthorized):
        make_place(address).join()
