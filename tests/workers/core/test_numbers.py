"""What Python has by numbers is what the headers of the core have by the same names."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path
from typing import Final

import pytest

from skywalker import limits
from skywalker.journal import record
from skywalker.wire import junction as wire
from skywalker.wire import pubsub
from tests.test_layout import ROOT
from workers.calls import owner
from workers.core.numbers import Action, Closed, Refusal, StandsAs, Verdict
from workers.doors.junction.session import FAILED
from workers.mesh import messages, remote_interests
from workers.stats import hands

CORE: Final = ROOT / "workers" / "core"


def _text(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def enumeration(name: str) -> dict[str, int]:
    """Return one of the headers, without that one which counts the others."""
    (words,) = (
        found[1]
        for path in CORE.glob("*.h")
        for found in re.finditer(rf"enum {name} {{(.*?)}};", _text(path), flags=re.DOTALL)
    )
    numbers: dict[str, int] = {}
    at = 0
    for word in words.split(","):
        key, _, number = (part.strip() for part in word.partition("="))
        at = int(number) if number else at
        numbers[key] = at
        at += 1
    return numbers


@pytest.mark.parametrize(
    ("name", "ours"),
    [("verdict", Verdict), ("refusal", Refusal), ("close", Closed), ("action", Action), ("standing", StandsAs)],
)
def test_each_has_the_same_number_on_both_sides(name: str, ours: type[IntEnum]) -> None:
    told = enumeration(name)
    told.pop("NO_REFUSAL", None)
    assert told == {each.name: each.value for each in ours}


def test_messages_are_of_the_same_kinds() -> None:
    told = enumeration("said")
    end = told.pop("SAYINGS")
    assert end == max(told.values()) + 1
    assert {f"SAY_{name}": kind for name, kind in vars(messages).items() if name.isupper()} == told


def test_calls_are_of_the_same_methods_and_have_the_same_outcomes() -> None:
    methods = enumeration("method")
    assert methods.pop("METHODS") == len(methods) == len(FAILED)
    assert [getattr(wire, name.removeprefix("M_")) for name in methods] == [*FAILED]
    outcomes = enumeration("outcome")
    assert outcomes.pop("OUTCOMES") == len(outcomes) == len(record.OUTCOMES)
    assert [getattr(record, name) for name in [*outcomes][1:]] == [*outcomes.values()][1:]


def test_the_journal_has_the_same_doors_and_routes() -> None:
    doors = enumeration("door")
    assert len(doors) == len(record.DOORS)
    assert (doors["JUNCTION_DOOR"], doors["PUBSUB_DOOR"]) == (record.JUNCTION, record.PUBSUB)
    routes = enumeration("route")
    assert [name.removeprefix("ROUTE_").lower() for name in routes] == [*record.ROUTES]
    assert [*routes.values()] == [record.HERE, record.SIBLING, record.NODE]


@pytest.mark.parametrize(
    ("file", "name", "ours"),
    [
        ("frames.h", "MAX_ARGUMENTS", limits.MAX_ARGUMENTS),
        ("frames.h", "MAX_DEPTH", limits.MAX_DEPTH),
        ("frames.h", "MAX_FRAME", limits.MAX_FRAME),
        ("frames.h", "MAX_ID", limits.MAX_ID),
        ("frames.h", "MAX_TOPIC", limits.MAX_TOPIC),
        ("frames.h", "MAX_TIMEOUT_MS", limits.MAX_TIMEOUT_MS),
        ("core.h", "WAITING_CALL_BYTES", limits.WAITING_CALL_BYTES),
        ("core.h", "GRACE_S", owner.GRACE_S),
        ("link.h", "FORM_BYTES", pubsub.FORM),
        ("link.h", "STUCK_S", remote_interests.STUCK_S),
    ],
)
def test_limits_are_the_same(file: str, name: str, ours: float) -> None:
    found = re.search(rf"#define {name} ([\d.]+)u?\b", _text(CORE / file))
    assert found is not None
    assert float(found[1]) == ours


def test_what_is_handed_out_is_written_where_it_is_read() -> None:
    found = dict(re.findall(r"HAND_(\w+) = (\d+)", (CORE / "hand.c").read_text()))
    assert {name: int(number) for name, number in found.items()} == {
        "COUNT": hands.COUNT,
        "HEAD": hands.HEAD,
        "ENTRY": hands.ENTRY,
    }
