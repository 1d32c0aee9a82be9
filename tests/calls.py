"""The two kinds of calls at a junction, by name."""

from __future__ import annotations

from skywalker.junction import Call


class Send(Call):
    """A call with a value."""

    __slots__ = ()

    def __init__(self, topic: bytes, since: float, value: bytes) -> None:
        super().__init__(topic, since, value, None)


class Listener(Call):
    """A call without, of a receiver or of a taker."""

    __slots__ = ()

    def __init__(self, topic: bytes, since: float, group: bytes | None = None) -> None:
        super().__init__(topic, since, None, group)
