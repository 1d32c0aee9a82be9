"""Topics whose owner changed while they had calls under way: younger calls follow these, so that none is overtaken.

The node that has the older calls moves them to the new owner, and forwards the younger ones after
them. Once it is known to use the new ring it is asked about the topic, and with its answer, which
comes after all that, the topic is free to go elsewhere. Otherwise it is when its calls have ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from skywalker.clients.call import Call
from skywalker.clients.line import Line, Stay


class Stays:
    """The topics that are bound to lines."""

    def __init__(self) -> None:
        self.by_topic: dict[bytes, Stay] = {}

    def replace(self, lines: dict[bytes, Line], calls: Iterable[tuple[Call, bytes]]) -> None:
        """Bind these topics and no others; `calls` are all that are about a topic, each with its own."""
        self.by_topic = {topic: Stay(topic, line) for topic, line in lines.items()}
        for call, topic in calls:
            call.stay = None
            if topic in lines:
                self.add(call, self.by_topic[topic])

    def add(self, call: Call, stay: Stay) -> None:
        """Count a call on a topic that is bound."""
        call.stay = stay
        stay.calls += 1

    def ended(self, call: Call) -> None:
        """A call that was counted has ended."""
        stay, call.stay = call.stay, None
        if stay is not None:
            stay.calls -= 1
            if not stay.calls:
                self.by_topic.pop(stay.topic, None)

    def lost(self, line: Line, calls: Iterable[Call]) -> None:
        """A line is lost, and its calls were taken off: what it bound follows older calls elsewhere, or is free."""
        lost = {stay: None for stay in self.by_topic.values() if stay.line is line}
        if not lost:
            return
        calls = [call for call in calls if call.stay in lost]
        for call in calls:
            if call.line is not None and call.stay is not None:
                call.stay.line = call.line
        for stay in lost:
            stay.asked = stay.is_kept_back = False
            if stay.line is line:
                self.release(stay, calls)

    def release(self, stay: Stay, calls: Iterable[Call]) -> None:
        """Let a topic go where it belongs."""
        del self.by_topic[stay.topic]
        for call in calls:
            if call.stay is stay:
                call.stay = None
