"""JSON as a terminal may have it: what steers one, but may stand as it is in a string of JSON, is escaped there."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_STEERING: Final = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls that are not of ASCII, what ends or turns a line around, and half a surrogate pair, which is no UTF-8."""


def json_text(value: Any, indent: int | None = None) -> str:
    """Return it. Raises RecursionError."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
