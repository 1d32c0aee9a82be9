"""Who refuses many says so once a second, with how many were left out."""

from __future__ import annotations

from typing import Any

import pytest

from skywalker.errors import Forbidden, RequestError
from workers.access.refusals import Refusals


class Lines:
    """A log that remembers its warnings."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.said.append({"event": event} | fields)


@pytest.mark.parametrize(("reason", "code"), [("it says much", {}), (Forbidden("send x"), {"code": "forbidden"})])
def test_there_is_a_line_a_second_whatever_comes(reason: RequestError | str, code: dict[str, str]) -> None:
    now = 1000.0
    lines = Lines()
    refusals = Refusals(lines.warning, "refused", lambda: now)
    for _ in range(250):
        refusals.note("here", reason)
        now += 0.01
    first, second, third = lines.said
    assert first == {"event": "refused", "peer": "here", "reason": reason} | code
    assert 98 <= second["left_out"] <= 101
    assert second == third | {"left_out": second["left_out"]}
