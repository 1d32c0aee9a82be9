"""What a worker was just handing out, as others read it once that is dead."""

from __future__ import annotations

from workers.stats.hands import COUNT, ENTRY, HEAD, ROOM, Hands, cell_of, life_of, number_in


def written(hands: Hands, part: int, count: int) -> int:
    """Have a new worker of that part be handing out so many values; return its life."""
    hands.begin(part)
    hand = hands.hand(part)
    for at in range(ENTRY * count):
        hand.memory[HEAD + at] = at
    hand.memory[COUNT] = count
    return cell_of(hand.life)


def test_it_is_read_until_another_has_begun_twice_in_its_place() -> None:
    hands = Hands(2)
    dead = written(hands, 1, 2)
    reader = hands.hand(1)
    assert reader.of(dead) == [*range(2 * ENTRY)]
    hands.begin(1)
    assert reader.of(dead) == [*range(2 * ENTRY)], "there is a spare"
    hands.begin(1)
    assert reader.of(dead) is None, "others have written there since"


def test_of_more_than_there_is_room_for_nothing_is_known() -> None:
    hands = Hands(1)
    dead = written(hands, 0, ROOM)
    assert hands.of(dead) == [*range(ENTRY * ROOM)]
    hands.hand(0).memory[COUNT] = ROOM + 1
    assert hands.of(dead) is None


def test_a_life_is_the_same_in_a_cell() -> None:
    for life in (life_of(1), life_of(2**40)):
        assert number_in(cell_of(life)) == life
