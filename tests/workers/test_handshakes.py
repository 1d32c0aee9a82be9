"""Many handshakes at once: each has its turn, and who has shaken hands before hardly notices."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.limits import Limits
from skywalker.tls.contexts import client_context
from skywalker.tls.records import Records
from tests.workers.outside import HOST, Outside, outside
from tests.workers.wire_client import RST_ON_CLOSE
from workers.figures import HANDSHAKES
from workers.handshakes import Handshakes
from workers.turn import Turn

MANY = 60

TURN_S = 0.001
"""More than a turn takes before it is long."""

SOME = 10
"""Handshakes that a fast machine may do before a turn is long."""


class Slow:
    """A handshake that takes a whole turn."""

    def __init__(self, number: int, gone_on: list[int]) -> None:
        self.number = number
        self.gone = False
        self.paused = False
        self._gone_on = gone_on

    def pause(self) -> None:
        assert not self.paused
        self.paused = True

    def go_on(self) -> None:
        assert not self.gone
        self._gone_on.append(self.number)
        time.sleep(TURN_S)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.one_of(st.integers(1, 4), st.just("turn"), st.integers(-9, -1)), max_size=12))
def test_one_a_turn_goes_on_in_the_order_in_which_they_came_but_for_those_who_are_gone(steps: list[int | str]) -> None:
    turn = Turn(time.monotonic())
    handshakes = Handshakes(turn)
    gone_on: list[int] = []
    waiting: list[Slow] = []
    came = 0
    for step in [*steps, *["turn"] * 50]:
        before = len(gone_on)
        expected = [each.number for each in waiting if not each.gone][:1]
        if step == "turn":
            turn.begin(time.monotonic())
            turn.go_on()
            assert gone_on[before:] == expected
            waiting = [each for each in waiting if each.number not in gone_on]
        elif isinstance(step, int) and step > 0:
            for _ in range(step):
                handshakes.come(each := Slow(came, gone_on))
                came += 1
                if each.number not in gone_on:
                    assert each.paused
                    waiting.append(each)
        elif waiting:
            waiting[int(step) % len(waiting)].gone = True
    assert not [each for each in waiting if not each.gone]
    assert gone_on == sorted(gone_on)
    assert not turn.resting


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Outside]:
    with outside(tmp_path, Limits(max_strangers=MANY)) as around:
        yield around


def first_words() -> bytes:
    records = Records(client_context(), server_hostname=HOST)
    records.shake_hands()
    return records.output()


def test_whoever_calls_meanwhile_is_answered_in_the_same_turn(around: Outside) -> None:
    words = first_words()
    with around.inside() as client:
        foes = [around.raw(around.for_nodes) for _ in range(MANY)]
        for foe in foes:
            foe.sendall(words)
        answered = 0
        turns = 0
        while answered < MANY:
            client.call(":ping", turns)
            around.worker.loop.turn(around.router.turn, patient=False)
            assert client.reply(0.1)[1] == turns
            now = len(select.select(foes, [], [], 0)[0])
            assert now - answered <= SOME
            answered = now
            turns += 1
            assert turns < 3 * MANY
        for foe in foes:
            foe.close()
        around.turn()


def test_who_is_gone_while_it_waits_for_its_turn_has_none(around: Outside) -> None:
    words = first_words()
    foes = [around.raw(around.for_nodes) for _ in range(MANY)]
    for foe in foes:
        foe.sendall(words)
    loop, turn, strangers = around.worker.loop, around.router.turn, around.router.admission.strangers
    while len(strangers) < MANY:
        loop.turn(turn, patient=False)
    loop.turn(turn, patient=False)
    assert turn.resting
    for foe in foes:
        foe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        foe.close()
    loop.turn(turn, patient=False)
    assert len(strangers) == 0
    assert around.worker.counted(HANDSHAKES) == {"": MANY}
