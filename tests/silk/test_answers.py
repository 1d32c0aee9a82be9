"""What was answered is known again, within bounds of bytes and of time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from skywalker.limits import MIB
from skywalker.silk.answers import KEEP_S, MAX_BYTES, OVERHEAD, Answers
from skywalker.wire.silk import Message

NOW = 0.0


def request(id: str, src: str = "a", data: Any = None) -> Message:
    return Message(src, "me", id, "resize", data)


def test_the_oldest_is_forgotten_first_when_there_are_too_many_bytes() -> None:
    answers = Answers()
    frame = b"x" * MIB
    for number in range(100):
        assert answers.is_new(request(str(number)), 0.0)
        answers.answered(request(str(number)), frame, NOW)
    known = [number for number in range(100) if answers.answer_to(request(str(number))) is not None]
    assert known == list(range(100 - len(known), 100))
    assert MAX_BYTES - 2 * MIB < len(known) * (MIB + OVERHEAD) < MAX_BYTES + 2 * MIB
    assert answers.is_new(request("99"), KEEP_S + 1), "and all of them in the end"
    assert len(answers) == 1


def test_answers_without_data_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 4 * MIB
    monkeypatch.setattr("skywalker.silk.answers.MAX_BYTES", most)
    answers = Answers()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(most // OVERHEAD + 5_000):
            # As they come from the wire: of ids that are nobody else's.
            message = request(f"01234567-89ab-4def-8123-{number:012}", src=f"01234567-89ab-4def-8123-{number:012}")
            answers.is_new(message, 0.0)
            answers.answered(message, b"{}%d" % number, NOW)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(answers) <= most // OVERHEAD
    assert after - before < 1.2 * most
