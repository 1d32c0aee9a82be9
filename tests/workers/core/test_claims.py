"""The judge of histories (claims.py): when two takers of one group may have the same value."""

from __future__ import annotations

from typing import Final

import pytest

from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core.claims import Calls, Claims, Lost

ID, TOPIC, GROUP = (values.pack(each) for each in (1, "topic", "group"))
MS: Final = values.pack(60_000)
VALUE: Final = values.pack(bytes(range(16)))
BEFORE: Final = Lost(siblings=1, abroad=1)


def taker(claims: Claims, *, acks: bool) -> Calls:
    talk = Calls(claims)
    talk.says(wire.frame(wire.HELLO, ID, values.pack({"ack": acks})))
    talk.says(wire.frame(wire.TAKE, ID, MS, TOPIC, GROUP))
    return talk


@pytest.mark.parametrize(
    ("acks", "lost", "may_be"),
    [
        (False, BEFORE, False),
        (True, BEFORE, False),
        (False, Lost(siblings=2, abroad=1), False),  # these know what the other one had handed out
        (True, Lost(siblings=2, abroad=1), True),
        (False, Lost(siblings=1, abroad=2), True),
    ],
)
def test_two_of_one_group_have_a_value_only_if_a_link_was_lost_that_puts_it_in_doubt(
    acks: bool, lost: Lost, may_be: bool
) -> None:
    claims = Claims()
    claims.sends(TOPIC, VALUE)
    takers = [taker(claims, acks=acks) for _ in range(2)]
    claims.lost = claims.lost_before = BEFORE
    takers[0].hears(wire.frame(wire.TAKE, ID, VALUE))
    claims.lost = lost
    if may_be:
        takers[1].hears(wire.frame(wire.TAKE, ID, VALUE))
        return
    with pytest.raises(AssertionError, match="two of one group"):
        takers[1].hears(wire.frame(wire.TAKE, ID, VALUE))
