"""Attacks of those whom a node does not know."""

from __future__ import annotations

import os
from collections.abc import Iterator

from skywalker.access import token
from skywalker.access.proof import NONCE, Challenge, Secrets
from skywalker.address import Address
from tests.abuse.foe import STRANGER, Foe, Target
from tests.workers.wire_client import call

SECRET = token.new()
"""That of the node. Of it these know nothing but what a dialler says of it to whoever it dials."""


def guesses(target: Target) -> Iterator[float]:
    """Say tokens that are nobody's, each on a connection of its own."""
    while True:
        foe = Foe(target.junction, call(":hello", 1, {"token": token.new()}), host=STRANGER)
        yield 0.01
        foe.socket.close()


def false_proofs(target: Target) -> Iterator[float]:
    """Have the node prove itself again and again, by what any node says to whoever it dials, and prove nothing."""
    node = Address("127.0.0.1", 1)
    while True:
        challenge = Challenge(Secrets(SECRET), "somebody", node, node, os.urandom(NONCE))
        said = call(":challenge", 1, dict(challenge.question)) + call(":proof", 2, os.urandom(32))
        foe = Foe(target.junction, said, host=STRANGER)
        yield 0.005
        foe.socket.close()
