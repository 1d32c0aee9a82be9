"""What cannot be sent is said with where it is, and what to send in its place."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from typing import Any, NamedTuple

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skywalker
from skywalker.clients import rpc
from skywalker.clients.unsendable import why_unsendable


class Point(NamedTuple):
    """A tuple with names."""

    x: Any
    y: Any = 0


@dataclasses.dataclass
class Job:
    """A value of a program's own."""

    id: int


class Colour(enum.Enum):
    """Another one."""

    RED = 1


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (object(), "value is of type object: send what is made of None"),
        ({"a": [0, 1, 2, Point(object())]}, "value['a'][3].x is of type object"),
        ([{"k": (1, {2})}], "value[0]['k'][1] is of type set: send a list of it"),
        ({"at": datetime.datetime(2026, 1, 1)}, "value['at'] is of type datetime.datetime: send its isoformat()"),
        ([decimal.Decimal(1)], "value[0] is of type decimal.Decimal: send str() of it"),
        ([uuid.UUID(int=1)], "value[0] is of type uuid.UUID: send str() of it"),
        ([pathlib.Path("a")], "value[0] is of type pathlib.PosixPath: send str() of it"),
        ([Colour.RED], "Colour: send its value"),
        ({"job": Job(1)}, "Job: send dataclasses.asdict() of it"),
        ([Job], "value[0] is of type type: send what"),
        ({"n": [2**64]}, "value['n'][0] is an integer of more than 64 bits"),
        ({"s": "\ud800"}, "value['s'] is a str that cannot be encoded as UTF-8: send it as bytes"),
        ([memoryview(b"abcd")[::2]], "value[0] is of type memoryview: send bytes() of it"),
        ({frozenset(): 1}, "the key frozenset() of value is of type frozenset: send a list of it"),
        ({"x" * 1000: object()}, f"value['{'x' * 59}] is of type object"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_it_is_found(value: Any, where: str) -> None:
    assert where in str(refused(value))


def test_so_is_what_is_wrong_with_a_topic_or_a_group() -> None:
    with skywalker.LocalJunction() as junction:
        with pytest.raises(skywalker.LocalProtocolError, match=r"topic\[1\] is of type object"):
            junction.recv(["a", object()], timeout=0)
        with pytest.raises(skywalker.LocalProtocolError, match="group is of type object"):
            junction.take("topic", object(), timeout=0)


def test_of_a_request_it_is_the_value_that_the_program_gave() -> None:
    with skywalker.LocalJunction() as junction, pytest.raises(skywalker.LocalProtocolError) as caught:
        junction.request("topic", [0, object()], timeout=0)
    assert ": value[1] is of type object" in str(caught.value)


def test_of_an_answer_it_is_what_the_handler_returned() -> None:
    assert ": value[1] is of type object" in rpc.failure(refused(rpc.success([0, object()])))["error"]


def refused(value: Any) -> Exception:
    """Return the error with which a value is not sent."""
    with skywalker.LocalJunction() as junction, pytest.raises(skywalker.LocalProtocolError) as caught:
        junction.send("topic", value, timeout=0)
    return caught.value


def test_a_value_that_holds_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    with skywalker.LocalJunction() as junction, pytest.raises(skywalker.LocalProtocolError, match="deep"):
        junction.send("topic", value, timeout=0)


LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary() | st.floats()
BAD = st.sampled_from([object(), memoryview(b"abcd")[::2], {1}, 2**70, datetime.date(2026, 1, 1)])


@given(
    st.recursive(
        LEAVES | BAD,
        lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    )
)
def test_something_is_found_just_where_msgpack_refuses(value: Any) -> None:
    try:
        msgpack.packb(value, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError, BufferError):
        assert why_unsendable(value, "value").removeprefix("the key ").startswith("value")
    else:
        assert why_unsendable(value, "value") == ""
