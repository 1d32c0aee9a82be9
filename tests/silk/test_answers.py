"""What was answered is known again, within bounds of bytes and of time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


keys = st.builds(request, st.sampled_from("123"), st.sampled_from("ab"))
deeds = st.tuples(st.sampled_from(["come", "answer", "withdraw"]), keys, st.floats(0, KEEP_S / 2))


@settings(max_examples=200)
@given(st.lists(deeds, max_size=40))
def test_nothing_is_done_twice_while_it_is_remembered(deeds: list[tuple[str, Message, float]]) -> None:
    answers = Answers()
    came: dict[tuple[str, str], float] = {}
    said: dict[tuple[str, str], bytes] = {}
    now = 0.0
    for number, (deed, message, pause) in enumerate(deeds):
        key = (message.src, message.id)
        now += pause
        if deed == "come":
            # Whose handler still runs is known for as long as that takes.
            came = {each: at for each, at in came.items() if each not in said or now - at < KEEP_S}
            said = {each: frame for each, frame in said.items() if each in came}
            is_new = key not in came
            assert answers.is_new(message, now) == is_new
            if is_new:
                came[key] = now
        elif deed == "answer":
            answers.answered(message, b"%d" % number, now)
            if key in came and key not in said:
                came[key] = now
                said[key] = b"%d" % number
        else:
            answers.withdraw(message)
            if key not in said:
                came.pop(key, None)
        assert answers.answer_to(message) == said.get(key)
        assert len(answers) == len(came)
    answers.is_new(request("the last"), now + KEEP_S + 1)
    assert answers._bytes == 0
