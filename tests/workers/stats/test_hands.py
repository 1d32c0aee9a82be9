"""What a worker was handing out when it died, as the others read it."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from workers.stats.hands import CELLS, NOBODY, Handed, Hands, cell_of, life_of, number_in

MORE_THAN_FIT = CELLS // 4
"""Entries, each of which takes five cells."""

NUMBERS = st.builds(
    lambda kind, number: bytes((kind, 0)) + number.to_bytes(7, "big"),
    st.sampled_from([0xCF, 0xD3]),
    st.integers(0, 2**56 - 1),
)


def begun(parts: int = 1) -> Hands:
    hands = Hands(parts)
    for part in range(parts):
        hands.begin(part)
    return hands


@given(NUMBERS)
def test_a_number_is_what_was_written(number: bytes) -> None:
    assert number_in(cell_of(number)) == number
    assert number_in(cell_of(NOBODY)) == NOBODY


def test_what_a_process_wrote_before_it_was_killed_is_there() -> None:
    hands = begun(2)
    life = bytes.fromhex(hands.life(1))
    pid = os.fork()
    if not pid:
        hand = hands.hand(1)
        hand.add(life_of(1), life_of(10), life_of(2), life_of(11))
        hand.taken(0)
        hand.add(life_of(1), NOBODY, NOBODY, life_of(12))
        os._exit(0)
    os.waitpid(pid, 0)
    assert hands.of(life) == [
        Handed(life_of(1), life_of(10), life_of(2), life_of(11), True),
        Handed(life_of(1), NOBODY, NOBODY, life_of(12), False),
    ]
    assert hands.of(bytes.fromhex(hands.life(0))) == []


def test_what_is_said_is_forgotten() -> None:
    hands = begun()
    hand = hands.hand(0)
    hand.add(life_of(1), NOBODY, NOBODY, life_of(2))
    hand.clear()
    assert hands.of(hand.life) == []


def test_too_much_is_known_to_be_too_much() -> None:
    hands = begun()
    hand = hands.hand(0)
    for number in range(MORE_THAN_FIT):
        hand.add(life_of(1), NOBODY, NOBODY, life_of(number))
    assert hands.of(hand.life) is None
    hand.clear()
    assert hands.of(hand.life) == []


def test_it_is_there_after_another_has_the_part_and_not_for_ever() -> None:
    hands = begun()
    hand = hands.hand(0)
    hand.add(life_of(1), NOBODY, NOBODY, life_of(2))
    hands.begin(0)
    assert hands.hand(0).life != hand.life
    found = hands.of(hand.life)
    assert found is not None
    assert [each.send for each in found] == [life_of(2)]
    hands.begin(0)
    assert hands.of(hand.life) is None
