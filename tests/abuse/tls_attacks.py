"""Attacks on TLS itself, at a node that speaks nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from skywalker.tls.contexts import GROUP, client_context
from skywalker.tls.records import Records
from tests.abuse.foe import Foe, Target
from tests.workers.wire_client import call

LONG_RECORD = bytes.fromhex("1603013fff01003ffb")
"""The beginning of a record with the beginning of a client's first words, which are some 16,000 bytes long."""


def first_words(host: str) -> bytes:
    """Return what a client says first: to say it again and again costs nothing, and to answer it a signature."""
    context = client_context()
    context.set_ecdh_curve(GROUP)
    records = Records(context, server_hostname=host)
    records.shake_hands()
    return records.output()


def half_a_handshake(target: Target) -> Iterator[float]:
    """Begin to shake hands on many connections at both doors, and say no more."""
    words = first_words(target.junction[0])
    foes = [Foe(target.junction, words, raw=True) for _ in range(60)]
    foes += [Foe(target.pubsub, words[:-1], raw=True) for _ in range(60)]
    while True:
        for foe in foes:
            foe.hear()
        yield 0.1


def handshakes_begun(target: Target) -> Iterator[float]:
    """Have the node sign again and again, for nothing."""
    words = first_words(target.junction[0])
    while True:
        for foe in [Foe(target.junction, words, raw=True) for _ in range(5)]:
            foe.socket.close()
        yield 0.01


def handshakes_of_a_byte(target: Target) -> Iterator[float]:
    """Say the beginning of a long handshake byte by byte, so that somebody always wants to go on."""
    foes = [Foe(target.junction, LONG_RECORD, raw=True) for _ in range(40)]
    while True:
        for foe in foes:
            foe.say(b"\0")
            foe.hear()
        yield 0.001


def records_of_a_byte(target: Target) -> Iterator[float]:
    """Say calls in records of one byte each, as fast as the node takes them."""
    foe = Foe(target.junction, call(":hello", 1, {}))
    said = call(":recv!", 1, 0, "topic")
    while True:
        for byte in said:
            foe.say(bytes((byte,)))
        foe.hear()
        yield 0.01
