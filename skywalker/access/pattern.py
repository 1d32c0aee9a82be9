"""Which topics are meant: one, all whose name begins so, or every topic."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from skywalker.errors import SkywalkerError
from skywalker.wire import values

EVERY: Final = "*"

FORM: Final = 'a topic, a prefix that ends in *, "*" for every topic, or {topic = ...} for one that looks like that'


@dataclasses.dataclass(frozen=True, slots=True)
class Patterns:
    """Some topics. Those of canonical MessagePack are told from one another, so 1, 1.0 and true are three."""

    every: bool = False
    exact: frozenset[bytes] = frozenset()
    prefixes: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, written: Iterable[Any]) -> Patterns:
        """Read a list of patterns: "jobs", "jobs/*", "*", 7, or {"topic": "what*ever"}. Raises ValueError."""
        exact: set[bytes] = set()
        prefixes: set[bytes] = set()
        every = False
        for each in written:
            if each == EVERY:
                every = True
            elif isinstance(each, str) and each.endswith(EVERY):
                prefixes.add(each.removesuffix(EVERY).encode())
            elif isinstance(each, str) and EVERY in each:
                raise ValueError(f"{each!r} is not {FORM}")
            else:
                exact.add(_topic(each))
        return cls(every, frozenset(exact), tuple(sorted(prefixes)))

    def match(self, topic: bytes) -> bool:
        """Whether a topic, as canonical MessagePack, is one of these."""
        return self.every or topic in self.exact or (bool(self.prefixes) and _text(topic).startswith(self.prefixes))


def _topic(written: Any) -> bytes:
    if isinstance(written, dict):
        if [*written] != ["topic"]:
            raise ValueError(f"{written!r} is not {FORM}")
        written = written["topic"]
    try:
        return values.topic_bytes(values.pack(written))
    except SkywalkerError as error:
        raise ValueError(f"{written!r} is not {FORM}") from error


def _text(topic: bytes) -> bytes:
    """Return the bytes of a string that is a topic; of any other kind, what no prefix fits. An empty one fits all."""
    first = topic[0]
    if 0xA0 <= first < 0xC0:
        return topic[1:]
    if first == 0xD9:
        return topic[2:]
    if first == 0xDA:
        return topic[3:]
    return b""
