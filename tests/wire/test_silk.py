from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skywalker.errors import LocalProtocolError, RemoteProtocolError, TooLarge
from skywalker.wire.silk import ALL, CONNECT, JOIN, KEEPALIVE, MAX_MESSAGE, MAX_NAME, MEMBERS, REPLY, Message

names = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=8) | st.sampled_from(
    ["_", "a" * MAX_NAME, "\u00e9" * MAX_NAME, "\U0001f600" * MAX_NAME, '"\\']
)
numbers = st.integers(-(10**30), 10**30) | st.just(10**4000) | st.floats(allow_nan=False, allow_infinity=False)
# Half a surrogate pair is nothing that UTF-8 can say, and yet JSON can.
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8) | st.sampled_from(["\ud800", "\x00", "\udfff"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
messages = st.builds(
    Message, names, st.just("") | st.just(ALL) | names, names, names, values, st.just("") | names, st.booleans()
)

FIELDS: dict[str, Any] = {"src": "a", "dest": "b", "id": "1", "type": "t"}


def frame(**changes: Any) -> bytes:
    """Return a frame of all that is required, with changes; `...` leaves a field out."""
    return json.dumps({key: value for key, value in (FIELDS | changes).items() if value is not ...}).encode()


@given(messages)
def test_what_is_encoded_is_what_is_decoded(message: Message) -> None:
    assert Message.decode(message.encode()) == message


def test_a_frame_has_no_more_fields_than_it_needs() -> None:
    assert json.loads(Message("a", ALL, "1", KEEPALIVE).encode()) == {
        "src": "a",
        "dest": "_all",
        "id": "1",
        "type": "_ka",
    }


def test_a_reply_names_its_message_in_both_words() -> None:
    assert json.loads(Message("a", "b", "2", REPLY, {"x": 1}, reply="1").encode()) == {
        "src": "a",
        "dest": "b",
        "id": "2",
        "type": "_reply",
        "data": {"x": 1},
        "reply": "1",
        "parent": "1",
    }


def test_either_word_is_enough() -> None:
    assert Message.decode(frame(type="_reply", reply="9")).reply == "9"
    assert Message.decode(frame(type="_reply", parent="9")).reply == "9"
    assert Message.decode(frame(type="_reply", reply=None, parent="9")).reply == "9"
    assert Message.decode(frame(type="_reply", reply="9", parent="8")).reply == "9"
    assert Message.decode(frame(type="_reply")).reply == ""


@pytest.mark.parametrize("type", [JOIN, MEMBERS])
@pytest.mark.parametrize("dest", [..., None, ""])
def test_whoever_does_not_know_a_node_yet_need_not_name_it(type: str, dest: Any) -> None:
    assert Message.decode(frame(type=type, dest=dest)) == Message("a", "", "1", type)


@pytest.mark.parametrize("type", [CONNECT, KEEPALIVE, REPLY, "resize"])
@pytest.mark.parametrize("dest", [..., None])
def test_all_others_need_a_dest(type: str, dest: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        Message.decode(frame(type=type, dest=dest))


@pytest.mark.parametrize("field", ["src", "id", "type"])
@pytest.mark.parametrize(
    "value",
    [..., None, "", 5, 0, True, [], {}, ["a"], "a" * (MAX_NAME + 1), "\ud800", "a\ud800", "a\nb", "\x00", "\x7f"],
)
def test_a_name_is_some_text_that_can_be_printed(field: str, value: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        Message.decode(frame(**{field: value}))


@pytest.mark.parametrize("value", [5, True, [], ["a"], {}, {"a": 1}, 1.5])
@pytest.mark.parametrize("field", ["dest", "reply"])
def test_a_dest_or_a_reply_of_a_wrong_type_is_no_message(field: str, value: Any) -> None:
    # What is false says nothing, as in the language that the dialect comes from.
    if field == "reply" and not value:
        assert Message.decode(frame(reply=value)).reply == ""
        return
    with pytest.raises(RemoteProtocolError):
        Message.decode(frame(**{field: value}))


@pytest.mark.parametrize("value", [1, "true", "yes", [True], {"a": 1}, None, False])
def test_only_true_is_silent(value: Any) -> None:
    assert Message.decode(frame(silent=True)).silent
    assert not Message.decode(frame(silent=value)).silent


def test_fields_that_nobody_knows_change_nothing() -> None:
    assert Message.decode(frame(colour="red", Src="x", data={"src": "y"})) == Message("a", "b", "1", "t", {"src": "y"})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"\x00",
        b"null",
        b"5",
        b'"text"',
        b"[]",
        b"{}",
        b"{",
        b'{"src":"a"',
        b"{'src':'a'}",
        b"\xff\xfe\xff",
        b"\x80",
        b'{"src":"a","dest":"b","id":"1","type":"t"} {}',
        b'{"src":"a","dest":"b","id":"1","type":"t"}\x00',
        b'{"src":"a","dest":"b","id":"1","type":"t","data":NaN}',
        b'{"src":"a","dest":"b","id":"1","type":"t","data":[-Infinity]}',
        b'{"src":"a","dest":"b","id":"1","type":"t","data":{"x":Infinity}}',
        b'{"src":"a","dest":"b","id":"1","type":"t","data":1e999}',
        b'{"src":"a","dest":"b","id":"1","type":"t","data":-' + b"9" * 400 + b".0}",
        b'{"src":"a","dest":"b","id":"1","type":"t","data":' + b"9" * 5000 + b"}",
        b'{"src":"a","dest":"b","id":"1","type":"t","data":"\xed\xa0"}',
        b"[" * 500_000,
        b'{"a":' * 150_000,
        b'{"src":"a","dest":"b","id":"1","type":"t","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda text: repr(text[:60]),
)
def test_what_is_no_message_says_so_and_nothing_else(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Message.decode(text)
    assert len(str(caught.value)) < 400


# Pieces of messages, so that many are nearly one.
pieces = st.lists(
    st.sampled_from(
        [
            *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"NaN", b"1e999", b"-", b"\\ud800"),
            *(b'"src":"a"', b'"dest":"b"', b'"dest":null', b'"id":"1"', b'"type":"t"', b'"type":"_join"', b'"data":'),
            *(b"9" * 400, b"\xff", b"\x00", b'"reply":', b'"parent":"x"', b'"silent":true'),
        ]
    )
    | st.binary(max_size=4)
).map(b"".join)

cut_off = st.builds(lambda message, end: message.encode()[:end], messages, st.integers(0, 300))


@given(st.binary() | pieces | cut_off)
@example(json.dumps(FIELDS).encode("utf-16"))
@example(b"\xef\xbb\xbf" + json.dumps(FIELDS).encode())
def test_any_bytes_are_a_message_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        message = Message.decode(data)
        assert Message.decode(message.encode()) == message


def test_a_message_is_a_mebibyte_at_most() -> None:
    empty = Message("a", "b", "1", "t", "")
    fits = Message("a", "b", "1", "t", "x" * (MAX_MESSAGE - len(empty.encode())))
    assert len(fits.encode()) == MAX_MESSAGE
    assert Message.decode(fits.encode()) == fits
    with pytest.raises(TooLarge) as caught:
        Message("a", "b", "1", "t", fits.data + "x").encode()
    assert caught.value.details == {"size": MAX_MESSAGE + 1, "limit": MAX_MESSAGE}
    with pytest.raises(RemoteProtocolError, match=f"{MAX_MESSAGE + 1} bytes"):
        Message.decode(fits.encode() + b" ")


@pytest.mark.parametrize("data", [float("nan"), float("inf"), [float("-inf")], b"bytes", {1, 2}, {(1, 2): 3}, object()])
def test_what_json_cannot_say_is_refused_where_it_is_said(data: Any) -> None:
    with pytest.raises(LocalProtocolError, match="'t'"):
        Message("a", "b", "1", "t", data).encode()


def test_data_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    for data in (endless, deep, 10**5000):
        with pytest.raises(LocalProtocolError, match="'t'"):
            Message("a", "b", "1", "t", data).encode()
    while deep:
        deep = deep[0]  # lest the interpreter takes it apart in one go
