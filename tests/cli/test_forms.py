"""Values as text: what is printed is read back as the same value, in each form."""

from __future__ import annotations

import json
import math
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.cli.forms import LONGEST_LINE, Form, Json, MessagePack, Raw, lines
from skywalker.json_form import FormError, Unprintable, from_json

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.just(math.nan)  # one of many: which one is not kept
    | st.text()
    | st.binary()
    | st.binary().map(lambda data: data.decode(errors="surrogateescape"))
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary())
    | st.builds(msgpack.Timestamp, st.integers(0, 2**63 - 1), st.integers(0, 999_999_999))
    | st.sampled_from(["$bin", "$map", "$float"])
)
keys = (
    st.text()
    | st.integers(-(2**63), 2**64 - 1)
    | st.binary()
    | st.sampled_from(["$bin", "$str", "$ext", "$float", "$map"])
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


def same(left: Any, right: Any) -> bool:
    """Equal and of the same types, a NaN being the same as a NaN."""
    return bool(
        msgpack.packb(left, unicode_errors="surrogateescape") == msgpack.packb(right, unicode_errors="surrogateescape")
    )


@given(values)
def test_any_value_printed_as_json_is_read_back_as_the_same(value: Any) -> None:
    line = Json().line(value)
    assert line.count(b"\n") == 1
    assert same(from_json(json.loads(line)), value)


@given(st.lists(values), st.integers(1, 50))
def test_a_stream_of_any_values_is_read_back_however_it_was_cut(sent: list[Any], cut: int) -> None:
    for form in (Json(), MessagePack()):
        stream = b"".join(map(form.line, sent))
        chunks = [stream[start : start + cut] for start in range(0, len(stream), cut)]
        got = list(form.stream(chunks))
        assert len(got) == len(sent)
        assert all(map(same, got, sent))


@given(st.binary())
def test_any_bytes_sent_raw_come_out_as_they_went_in(data: bytes) -> None:
    assert Raw().text(Raw().document(data)) == data
    assert Raw().text(Raw().argument(data)) == data


@given(st.text().filter(lambda text: not text.lstrip().startswith(("{", "[", '"'))))
def test_text_that_is_no_json_is_a_string(text: str) -> None:
    value = Json().argument(text.encode())
    assert value == text or json.loads(text) == value


@pytest.mark.parametrize("text", ["{a: 1}", "[1,", '"open', '  {"a"', "[NaN]"])
def test_text_that_was_meant_as_json_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(FormError, match="--raw"):
        Json().argument(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"$bin": "a"}',
        '{"$bin": 5}',
        '{"$str": null}',
        '{"$ext": [128, ""]}',
        '{"$ext": [1]}',
        '{"$float": "nil"}',
        '{"$map": [1]}',
        '{"$map": [[[1], 2]]}',
        '[{"$float": []}]',
    ],
)
def test_a_dollar_form_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FormError):
        Json().argument(text.encode())


def test_a_document_loses_the_newline_that_echo_adds_and_nothing_else() -> None:
    assert Json().document(b"two\nlines\n") == "two\nlines"
    assert Raw().document(b"two\nlines\n") == "two\nlines\n"


@pytest.mark.parametrize("form", [Json(), Raw(), MessagePack()], ids=lambda form: type(form).__name__)
def test_the_deepest_value_that_the_protocol_allows_is_printed_or_refused_in_words(form: Form) -> None:
    value: Any = []
    for _ in range(510):
        value = [value]
    assert form.line(value)
    for _ in range(600):
        value = {5: value}
    if isinstance(form, MessagePack):
        return
    with pytest.raises(Unprintable, match="--msgpack"):
        form.line(value)


@pytest.mark.parametrize("data", [b"\x93\x01", b"\x01\x02", b"\xc1", b"", b"\x81\x90\x01"])
def test_a_document_that_is_not_one_messagepack_value_is_refused(data: bytes) -> None:
    with pytest.raises(FormError):
        MessagePack().document(data)


def test_a_messagepack_stream_that_ends_within_a_value_is_refused_after_those_before_it() -> None:
    stream = MessagePack().stream([b"\x01\x02", b"\x92\x01"])
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(FormError, match="ends within"):
        next(stream)


def test_a_line_without_an_end_is_given_up_before_it_fills_the_memory() -> None:
    endless = (b"x" * 65_536 for _ in iter(int, 1))
    with pytest.raises(FormError, match=str(LONGEST_LINE)):
        next(lines(endless))
