"""Encoded values: the canonical form of topics, and timeouts.

Every well-formed value has one canonical form, which is its own, and which the msgpack library makes of the same value
by itself. It is a topic if that is short enough. It is a timeout if Python finds that it is a number within bounds.
Compiled and plain say the same; nothing raises anything but BadTopic and BadTimeout.

The values of an input are found wherever one begins.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import msgpack

from skywalker.errors import BadTimeout, BadTopic
from skywalker.limits import MAX_TIMEOUT_MS, MAX_TOPIC
from skywalker.wire import values
from tests.fuzz.twins import agreed, outcome, twins
from tests.wire.streams import length_of_first_value

FORMS = twins("skywalker.wire.values")
MOST = 48  # values of one input


class Pairs(list[tuple[Any, Any]]):
    """A map that keeps its order, and keys that come twice or are lists."""


def check_input(data: bytes) -> object:
    """Hold the invariant for each value in an input."""
    said: list[object] = []
    while data and len(said) < MOST:
        length = length_of_first_value(data)
        if length:
            said.append(check_value(data[:length]))
        data = data[length or 1 :]
    return said


def check_value(data: bytes) -> object:
    """Hold the invariant for one value."""
    canonical: bytes = agreed(form.canonical(data) for form in FORMS)
    assert len(canonical) <= len(data)
    assert values.canonical(canonical) == canonical
    assert length_of_first_value(canonical) == len(canonical)
    if (shortest := shortest_form(data)) is not None:
        assert canonical == shortest
    topic = agreed(outcome(partial(form.topic_bytes, data), BadTopic) for form in FORMS)
    assert topic == canonical or (len(canonical) > MAX_TOPIC and topic[0] == "BadTopic")
    seconds = agreed(outcome(partial(form.timeout_seconds, data), BadTimeout) for form in FORMS)
    if (expected := seconds_of(data)) is None:
        assert seconds[0] == "BadTimeout"
    else:
        assert seconds == expected
    return canonical, seconds


def shortest_form(data: bytes) -> bytes | None:
    """Return what the msgpack library makes of the value that it reads; None where it cannot keep what was said."""
    try:
        value = msgpack.unpackb(
            data, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=Pairs, max_ext_len=len(data)
        )
        packer = msgpack.Packer(unicode_errors="surrogateescape", autoreset=False)
        pack(packer, value)
    except (ValueError, TypeError, OverflowError):
        return None
    return packer.bytes()


def pack(packer: msgpack.Packer, value: Any) -> None:
    """Add a value. Raises TypeError for one that may have had another form: 32 bits of a float, 96 of a time."""
    if isinstance(value, Pairs):
        packer.pack_map_header(len(value))
        for pair in value:
            for each in pair:
                pack(packer, each)
    elif isinstance(value, list):
        packer.pack_array_header(len(value))
        for each in value:
            pack(packer, each)
    elif isinstance(value, float | msgpack.Timestamp):
        raise TypeError
    else:
        packer.pack(value)


def seconds_of(data: bytes) -> float | None:
    """Return the seconds of a timeout, None if it is none."""
    try:
        number = msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError):
        return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MAX_TIMEOUT_MS:
        return None
    return math.ceil(number) / 1000
