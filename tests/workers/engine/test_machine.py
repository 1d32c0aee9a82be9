"""What a machine makes of what it is asked for."""

from __future__ import annotations

from skywalker.access.proof import NONCE
from workers.engine.machine import MACHINE, Machine


def test_a_nonce_is_made_of_a_token_so_that_who_replaces_that_has_both() -> None:
    machine = Machine()
    machine.token = lambda size: size * "5a"
    assert machine.nonce(NONCE) == NONCE * b"Z"


def test_no_nonce_comes_twice() -> None:
    made = {MACHINE.nonce(NONCE) for _ in range(100)}
    assert len(made) == 100
    assert {len(each) for each in made} == {NONCE}
