"""Where in a value is what MessagePack has no form for, and what can be sent in its place."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from typing import Any, Final

import msgpack

from skywalker.limits import MAX_DEPTH

_INTEGERS: Final = range(-(2**63), 2**64)

_KEY_CHARACTERS: Final = 60
"""Of a key in a path: values may have long ones."""

_ADVICE: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    ((set, frozenset), "send a list of it"),
    ((enum.Enum,), "send its value"),
    ((datetime.datetime, datetime.date, datetime.time), "send its isoformat()"),
    ((datetime.timedelta,), "send its total_seconds()"),
    ((memoryview,), "send bytes() of it"),
    ((decimal.Decimal, uuid.UUID, pathlib.PurePath, complex), "send str() of it"),
)
"""What to do about the types that people try, the first that fits."""

_FOREIGN: Final = {"numpy": "send its tolist()", "pandas": "send what its to_dict() returns"}
"""The same by the package of a type, which is not loaded for that."""

_ANY: Final = "send what is made of None, bool, int, float, str, bytes, list and dict"


def why_unsendable(value: Any, path: str, depth: int = 0) -> str:
    """Return where in `value`, which is called `path`, something cannot be sent, and what to do; empty if nothing."""
    if depth > MAX_DEPTH:
        return f"a value is nested at most {MAX_DEPTH} deep, or holds itself: {path[:_KEY_CHARACTERS]}... is deeper"
    if isinstance(value, dict):
        for key, each in value.items():
            shown = f"{key!r:.{_KEY_CHARACTERS}}"
            why = why_unsendable(key, f"the key {shown} of {path}", depth + 1)
            if why or (why := why_unsendable(each, f"{path}[{shown}]", depth + 1)):
                return why
        return ""
    if isinstance(value, (list, tuple)):
        names = getattr(type(value), "_fields", None)  # of a named tuple
        for number, each in enumerate(value):
            step = f"[{number}]" if names is None else f".{names[number]}"
            if why := why_unsendable(each, path + step, depth + 1):
                return why
        return ""
    if isinstance(value, int) and value not in _INTEGERS:
        return f"{path} is an integer of more than 64 bits: send str() of it, or bytes"
    try:
        msgpack.packb(value, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError, BufferError) as error:
        if isinstance(error, UnicodeError):
            return f"{path} is a str that cannot be encoded as UTF-8: send it as bytes"
        return f"{path} is of type {_name_of(type(value))}: {_advice(value)}"
    return ""


def _name_of(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _advice(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "send dataclasses.asdict() of it"
    for types, advice in _ADVICE:
        if isinstance(value, types):
            return advice
    return _FOREIGN.get(type(value).__module__.partition(".")[0], _ANY)
