"""Golden vectors: what the original programs put on the wire and compute, as data.

`frames.json` holds whole frames with their decoded elements (an object with `type` and
`payload_hex` is an extension); `tokens.json` holds the tokens of encoded topics.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack

_HERE: Final = Path(__file__).parent


class GoldenFrame(NamedTuple):
    """A frame as it stands on the wire, and what its array holds."""

    wire: bytes
    elements: list[Any]
    note: str


class GoldenToken(NamedTuple):
    """An encoded topic and the token that the original gives it."""

    topic: bytes
    token: int
    note: str


def golden_frames() -> list[GoldenFrame]:
    """Return every golden frame."""
    return [
        GoldenFrame(bytes.fromhex(vector["hex"]), [_value(element) for element in vector["elements"]], vector["note"])
        for vector in json.loads((_HERE / "frames.json").read_text())
    ]


def golden_tokens() -> list[GoldenToken]:
    """Return every golden token."""
    return [
        GoldenToken(bytes.fromhex(vector["id_msgpack_hex"]), vector["token"], vector["note"])
        for vector in json.loads((_HERE / "tokens.json").read_text())
    ]


def _value(element: Any) -> Any:
    if isinstance(element, dict):
        return msgpack.ExtType(element["type"], bytes.fromhex(element["payload_hex"]))
    return element
