"""A topic of a journal as text, for people and for tables."""

from __future__ import annotations

import json

from skywalker.json_form import Unprintable, to_json
from skywalker.wire import values


def topic_text(topic: bytes) -> str:
    """Return a string that is UTF-8 as it is, any other topic as JSON, and what is no MessagePack in hexadecimal."""
    try:
        form = to_json(values.unpack(topic))
        return form if isinstance(form, str) else json.dumps(form, ensure_ascii=False, allow_nan=False)
    except (ValueError, Unprintable, RecursionError):
        return f"0x{topic.hex()}"


def beginning_text(topic: bytes) -> str:
    """Return as much as there is of a topic that is cut off: a string as it is, any other in hexadecimal."""
    width = {0xD9: 1, 0xDA: 2}.get(topic[0])
    text = f"0x{topic.hex()}" if width is None else topic[1 + width :].decode(errors="ignore")
    return f"{text}…"
