"""Any MessagePack value as JSON and back.

What JSON lacks has a form with one key that begins with `$`, printed and read alike:

    {"$bin": base64}        bytes
    {"$str": base64}        a string that is not UTF-8
    {"$ext": [n, base64]}   a MessagePack extension
    {"$float": "nan"}       nan, inf, -inf
    {"$map": [[k, v], ...]} a map with keys that are no strings, or that would look like one of these forms
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any, Final

import msgpack

from skywalker.errors import SkywalkerError

_MARKS: Final = frozenset({"$bin", "$str", "$ext", "$float", "$map"})


class FormError(ValueError):
    """The text is not what its form asks for; says why and what to do."""


class NoJson(FormError):
    """The text is no JSON, and no bare word either."""


class Unprintable(SkywalkerError):
    """A value has no text in the form that was asked for."""


def to_json(value: Any) -> Any:
    """Return what json.dumps() takes, for anything that MessagePack can hold."""
    # Plain loops: a comprehension would double the depth of calls, and values nest 512 deep.
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case str():
            return value if _is_text(value) else {"$str": _base64(value.encode(errors="surrogateescape"))}
        case bytes():
            return {"$bin": _base64(value)}
        case msgpack.ExtType():
            return {"$ext": [value.code, _base64(value.data)]}
        case msgpack.Timestamp():
            return {"$ext": [-1, _base64(value.to_bytes())]}
        case list() | tuple():
            items = []
            for item in value:
                items.append(to_json(item))
            return items
        case dict():
            plain = all(isinstance(key, str) and _is_text(key) for key in value) and not _is_marked(value)
            pairs = []
            for key, item in value.items():
                pairs.append([key if plain else to_json(key), to_json(item)])
            return dict(pairs) if plain else {"$map": pairs}
    raise Unprintable(f"a {type(value).__name__} cannot be printed as JSON")


def from_json(value: Any) -> Any:
    """Return the value that to_json() made this of. Raises FormError for a $ form that is none."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not _is_marked(value):
        return {key: from_json(item) for key, item in value.items()}
    ((mark, content),) = value.items()
    try:
        return _READ[mark](content)
    except (ValueError, TypeError, KeyError) as error:
        raise FormError(f"{json.dumps(value)} is not of the form {_FORMS[mark]}") from error


def from_text(data: bytes) -> Any:
    """Return the value of JSON, or a string for text that is none and does not begin as JSON would.

    Raises NoJson if it does or is not UTF-8, and FormError for a $ form that is none.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NoJson("it is not UTF-8") from None
    try:
        return from_json(json.loads(text, parse_constant=_no_constant))
    except FormError:
        raise
    except RecursionError:
        raise FormError("it is nested too deeply") from None
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise NoJson(f"it looks like JSON but is none ({error})") from None
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _read_ext(content: Any) -> Any:
    code, data = content
    payload = _bytes(data)
    if code == -1:
        return msgpack.Timestamp.from_bytes(payload)
    return msgpack.ExtType(code, payload)


def _read_map(content: Any) -> Any:
    return {from_json(key): from_json(item) for key, item in content}


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "$bin": _bytes,
    "$str": lambda content: _bytes(content).decode(errors="surrogateescape"),
    "$ext": _read_ext,
    "$float": lambda content: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content],
    "$map": _read_map,
}
_FORMS: Final = {
    "$bin": '{"$bin": base64}',
    "$str": '{"$str": base64}',
    "$ext": '{"$ext": [type from 0 to 127, or -1 for a timestamp, base64]}',
    "$float": '{"$float": "nan", "inf" or "-inf"}',
    "$map": '{"$map": [[key, value], ...]}',
}


def _is_marked(value: dict[Any, Any]) -> bool:
    return len(value) == 1 and not _MARKS.isdisjoint(value)


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
