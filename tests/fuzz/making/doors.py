"""Seeds of the doors of a worker: what clients, other workers and other nodes do there."""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgpack

from skywalker.access.proof import Secrets
from skywalker.wire import pubsub
from tests.data import golden_frames
from tests.fuzz.making.steps import (
    Seeds,
    again,
    calls,
    frame,
    later,
    leaves,
    link,
    long_call,
    packed,
    reads,
    says,
    spoken,
    talk,
)
from tests.wire.streams import framed

CONVERSATION: Final = (
    calls(0, ":send!", 1, 1000, "foo", "bar"),
    calls(1, ":recv!", 1, 1000, "foo"),
)


def session() -> Seeds:
    acks = calls(1, ":hello", 9, {"name": "test", "ack": True, "ring": True})
    return {
        "golden": talk(*(bytes((n % 2, len(each.wire) - 2)) + each.wire[2:] for n, each in enumerate(golden_frames()))),
        "meet": talk(*CONVERSATION),
        "recv-first": talk(*reversed(CONVERSATION)),
        "timeouts": talk(calls(0, ":send!", 1, 50, "no", "foo", "bar"), later(0.3), calls(0, ":recv!", 2, 0, "foo")),
        "take": talk(
            calls(0, ":take!", 1, 900, "a", "g"), calls(1, ":take!", 2, 900, "a", "g"), calls(2, ":send!", 3, 9, "a", 7)
        ),
        "cancel": talk(calls(0, ":recv!", 1, 900, "a"), calls(0, ":cancel", 2, 1), calls(0, ":cancel", 3, 1)),
        "ack": talk(acks, calls(1, ":recv!", 1, 900, "a"), calls(0, ":send!", 2, 900, "a", [1]), calls(1, ":ack", 1)),
        "not-acked": talk(acks, calls(1, ":recv!", 1, 900, "a"), calls(0, ":send!", 2, 900, "a", 1), leaves(1)),
        "given-back": talk(
            acks, calls(1, ":recv!", 1, 900, "a"), calls(0, ":send!", 2, 900, "a", 1), calls(1, ":cancel", 3, 1)
        ),
        "subscribe": talk(
            calls(0, ":subscribe", 1, "a"),
            calls(1, ":subscribe", 1, "a"),
            calls(2, ":send!", 5, 900, "a", {"b": 1}),
            calls(0, ":unsubscribe", 2, 1),
            calls(1, ":subscribe", 1, "a"),
            calls(2, ":send!", 6, 0, "a", None),
        ),
        "questions": talk(
            calls(0, ":tokens", 1),
            calls(0, ":topic", 2, "a"),
            calls(0, ":ping", 3),
            calls(0, ":ping", None, True),
            calls(0, ":nodes", 4),
            calls(0, ":nodes", 5, "zz"),
            calls(0, ":join", 6, "127.0.0.1:3443"),
        ),
        "peer": talk(
            calls(0, ":peer", 1, {"from": "guest", "by": 0, "node": "id", "worker": 0, "version": 2, "life": "x"}),
            says(0, link(2, 1, 0.0, "a", None)),
            calls(1, ":send!", 1, 900, "a", "hi"),
            says(0, link(4, 1)),
        ),
        "bad": talk(
            calls(0, ":nothing", 1),
            calls(0, ":send!", 1),
            calls(0, ":recv!", "x" * 40, 1, "a"),
            calls(0, ":recv!", 2, "x", "a"),
            says(0, b"\0\1\xc1\0\0\0\3\x93\xa5:"),
            calls(0),
            says(0, framed(b"\x05") * 17),
        ),
        "pipelined": talk(*CONVERSATION, again(0, 9), again(1, 8), later(0.05), limits=1, step=1),
        "slow-reader": talk(
            reads(1, 40),
            calls(1, ":recv!", 1, 900, "foo"),
            again(1, 7),
            calls(0, ":send!", 1, 900, "foo", "bar" * 9),
            again(0, 7),
            reads(1, 60),
            later(0.01),
            reads(1, 255),
            limits=1,
        ),
        "stuck-reader": talk(reads(0, 0), calls(0, ":ping", 1), again(0, 15), later(31.0), limits=2),
        "silent": talk(acks, calls(1, ":recv!", 1, 99_000, "a"), later(61.0), later(61.0), limits=2),
        "half-a-frame": talk(says(0, b"\0\x10\x94"), later(11.0), later(5.0), limits=2),
        "long": talk(
            long_call(0, 200, ":send!", 1, 900, "a", ""),
            calls(1, ":recv!", 2, 900, "a"),
            long_call(0, 255, ":recv!", 1, 9, ""),
        ),
        "gone": talk(*CONVERSATION[:1], leaves(0), *CONVERSATION[1:], leaves(1), limits=1),
    }


def pub_sub() -> Seeds:
    bomb = zlib.compress(bytes(2_000_000))[:200]
    small = zlib.compress(b"hi")
    plain, typed = pubsub.subscribe(b"a"), pubsub.subscribe(b"a", typed=True)
    return {
        "publish": talk(
            spoken(0, plain),
            spoken(1, typed),
            spoken(1, pubsub.publish(b"a", b"hi")),
            spoken(0, pubsub.publish(b"b", b"")),
        ),
        "typed": talk(
            spoken(0, plain),
            spoken(1, typed),
            spoken(2, pubsub.publish_typed(b"a", b"\7\1", small)),
            spoken(2, pubsub.publish_typed(b"a", b"\7\0", b"hi")),
            spoken(1, plain),
            spoken(0, pubsub.unsubscribe(b"a")),
        ),
        "bomb": talk(spoken(1, typed), spoken(0, pubsub.publish_typed(b"a", b"\0\1", bomb))),
        "bombs": talk(
            spoken(1, typed), spoken(0, pubsub.publish_typed(b"a", b"\0\1", zlib.compress(bytes(60_000)))), again(0, 15)
        ),
        "not-compressed": talk(spoken(0, pubsub.publish_typed(b"a", b"\0\1", b"garbage"))),
        "unknown": talk(spoken(0, plain + b"\x09\x01\x02")),
        "ack": talk(spoken(0, pubsub.ACKED + plain)),
        "half": talk(spoken(0, pubsub.publish(b"a", b"hello")[:-2]), later(11.0), limits=2),
        "bridge": talk(
            spoken(0, plain),
            calls(3, ":subscribe", 1, "a"),
            calls(3, ":send!", 2, 900, "a", b"hi"),
            spoken(1, pubsub.publish(b"a", b"yo")),
            calls(3, ":recv!", 3, 900, "b"),
            spoken(1, pubsub.publish(b"b", b"x")),
            calls(3, ":send!", 4, 50, "b", [1, 2]),
        ),
        "slow": talk(
            reads(0, 10),
            spoken(0, plain),
            spoken(1, pubsub.publish(b"a", b"hello" * 9)),
            again(1, 15),
            reads(0, 255),
            limits=1,
        ),
        "not-utf8": talk(
            spoken(0, pubsub.subscribe(b"\xff\xfe")), spoken(1, pubsub.publish(b"\xff\xfe", b"hi")), leaves(0)
        ),
        "pipelined": talk(
            spoken(0, plain + pubsub.publish(b"a", b"1") + pubsub.publish(b"b", b"2") + pubsub.unsubscribe(b"a")),
            leaves(0),
        ),
    }


def mesh() -> Seeds:
    """The node is the third client; the first byte of an input says who it is."""
    asks, is_asked, silent, new, proves = 0, 1, 2, 4, 8
    no = b"\xcf" + bytes(7)
    node = 2

    def tells(*elements: Any) -> bytes:
        return calls(node, *elements)

    def numbered(kind: int, number: int, *rest: Any) -> bytes:
        """A message with a number as the worker makes them."""
        body = bytes((0x92 + len(rest), kind)) + no + bytes((number,)) + b"".join(msgpack.packb(each) for each in rest)
        return bytes((node, len(body))) + body

    guest = {
        "send": talk(tells(1, 1, 0.0, "a", "hi"), calls(0, ":recv!", 7, 900, "a")),
        "listen": talk(
            tells(2, 1, -0.5, "b", None),
            tells(2, 2, 0.0, "b", None),
            calls(0, ":send!", 1, 900, "b", "hi"),
            tells(5, 1),
            tells(4, 2),
        ),
        "withdraw": talk(tells(1, 1, 0.0, "a", "hi"), tells(3, 1, False), tells(2, 2, 0, "c", "g"), tells(3, 2, True)),
        "subscribe": talk(
            tells(7, "p", 1), calls(0, ":send!", 1, 900, "p", [1]), tells(4, -(2**63) + 1), tells(7, "p", 0)
        ),
        "publish": talk(
            calls(0, ":subscribe", 1, "t"),
            tells(6, 1, "t", None, b"\7\1" + zlib.compress(b"hi")),
            tells(6, 2, "t", b"hi", b"\7\0"),
            tells(6, 3, "t", b"hi", None),
            tells(8, 4, "t"),
            calls(0, ":recv!", 3, 50, "t"),
        ),
        "breaks": talk(
            tells(2, 1, 0.0, "c", None),
            calls(0, ":send!", 1, 900, "c", "hi"),
            leaves(node),
            calls(1, ":recv!", 2, 900, "c"),
        ),
        "answers-doubt": talk(numbered(14, 0, b""), later(1.0), numbered(14, 1, b""), tells(1, 1, 0.0, "a", 1)),
        "nonsense": talk(
            tells(1, 1), tells(16, "a", None, "x", None), tells(17, "p"), says(node, b"\xff\xff\xff\xff\1")
        ),
        "reads-nothing": talk(
            reads(node, 0),
            tells(2, 1, 0.0, "c", None),
            calls(0, ":send!", 1, 900, "c", "hi"),
            again(node, 15),
            limits=1,
        ),
        "ours": talk(tells(2, -(2**63) + 1, 0.0, "c", None), tells(2, 1, 0, "c", None), tells(2, 1, 0, "c", None)),
    }
    asked = {
        "give": talk(
            calls(0, ":recv!", 1, 900, "a"),
            calls(0, ":recv!", 2, 900, "b"),
            calls(0, ":recv!", 3, 900, "e"),
            numbered(9, 0, "hi"),
            numbered(10, 1),
            numbered(10, 2),
        ),
        "met": talk(
            calls(0, ":send!", 1, 900, "a", 1),
            calls(0, ":send!", 2, 900, "b", 1),
            numbered(11, 0),
            numbered(12, 1),
            numbered(13, 2),
        ),
        "counted": talk(
            calls(0, ":topic", 1, "a"),
            calls(0, ":topic", 2, "b"),
            calls(0, ":topic", 3, "e"),
            numbered(14, 0, b"\x80"),
            numbered(14, 1, b"\x80"),
        ),
        "offer": talk(
            calls(0, ":subscribe", 1, "a"),
            calls(1, ":subscribe", 1, "b"),
            tells(17, "a"),
            tells(17, "b"),
            tells(16, "a", None, 1, None),
            tells(16, "b", 5, b"x", b"\7\0"),
            tells(16, "a", 6, None, b"\7\1" + zlib.compress(b"hi")),
            tells(15, 5),
            tells(18, "a"),
        ),
        "recall": talk(
            reads(0, 0), calls(0, ":recv!", 1, 900, "a"), numbered(9, 0, "hi"), numbered(15, 0), reads(0, 255)
        ),
        "breaks": talk(
            calls(0, ":send!", 1, 900, "a", 1),
            calls(1, ":recv!", 1, 900, "b"),
            leaves(node),
            later(1.0),
            numbered(11, 2),
        ),
        "late": talk(calls(0, ":send!", 1, 50, "a", 1), later(0.05), numbered(11, 0), later(0.3)),
    }
    answers: dict[str, Any] = {
        "another": {"node": "else", "worker": 0},
        "stray": {"node": "other", "worker": 7},
        "number": 5,
        "refusal": msgpack.ExtType(0x45, packed("busy", "no", {})),
    }
    early = {
        "settled": talk(
            tells(7, "p", 1),
            calls(0, ":send!", 1, 900, "p", [1]),
            tells(19, None),
            tells(1, 1, 0.0, "a", "hi"),
            calls(1, ":recv!", 7, 900, "a"),
            later(5.0),
            tells(7, "p", 0),
        ),
        "dies": talk(tells(7, "p", 1), tells(1, 1, 0.0, "a", "hi"), calls(0, ":recv!", 7, 900, "a"), leaves(node)),
        "listen": guest["listen"],
        "publish": guest["publish"],
    }
    seeds = {f"guest-{name}": bytes((asks,)) + data for name, data in guest.items()}
    seeds |= {f"new-{name}": bytes((asks | new,)) + data for name, data in early.items()}
    seeds["new-asks"] = bytes((is_asked | new,)) + asked["offer"]
    seeds |= {f"asked-{name}": bytes((is_asked,)) + data for name, data in asked.items()}
    seeds |= {
        f"answer-{name}": bytes((is_asked | silent,))
        + talk(
            calls(0, ":send!", 1, 900, "a", 1),
            calls(1, ":send!", 1, 900, "b", 1),
            says(node, frame(":peer", 0, answer)),
        )
        for name, answer in answers.items()
    }
    at = {"node": "other", "address": "127.0.0.1:3444", "nonce": 32 * b"n", "proof": 32 * b"p"}
    proofs: dict[str, Any] = {
        "wrong": at | {"key": Secrets("skw_" + 43 * "M").ids[0]},
        "keyless": at,
        "peer": {"node": "other", "worker": 0},
        "old": msgpack.ExtType(0x45, packed("unknown-method", "there is no such method", {})),
    }
    seeds |= {
        f"proof-{name}": bytes((is_asked | silent | proves,))
        + talk(calls(0, ":send!", 1, 900, "a", 1), says(node, frame(":challenge", 0, answer)), later(1.0))
        for name, answer in proofs.items()
    }
    for method in (":error", ":peer", ":proof"):
        seeds[f"proof-{method[1:]}-unasked"] = bytes((is_asked | silent | proves,)) + talk(
            calls(0, ":send!", 1, 900, "a", 1),
            says(node, frame(method, 0, {"node": "other", "worker": 0})),
            says(node, frame(":proof", 0, True)),
            later(1.0),
        )
    seeds["unproven"] = bytes((asks | proves,)) + guest["send"] if "send" in guest else bytes((asks | proves,))
    seeds["stranger"] = bytes((asks | silent,)) + talk(
        says(node, frame(":peer", 1, {"from": "x", "by": -1, "node": "id", "worker": 0, "version": 2}))
    )
    return seeds


def siblings() -> Seeds:
    """The same conversations: every other client is at the other worker."""
    dies = bytes((5 << 5, 0, 0))
    one, other = 3, 4
    topics = [b"a", b"b", b"c", b"d"]
    return session() | {
        "dies": talk(calls(0, ":send!", 1, 900, "a", 1), dies, calls(1, ":recv!", 1, 900, "a")),
        "published": talk(
            *(spoken(one, pubsub.subscribe(each)) for each in topics),
            *(spoken(other, pubsub.subscribe(each, typed=True)) for each in topics),
            *(spoken(n % 2 + one, pubsub.publish(each, b"hi")) for n, each in enumerate(topics * 2)),
            calls(0, ":send!", 1, 900, "a", b"x"),
            *(spoken(one, pubsub.publish_typed(each, b"\7\1", zlib.compress(b"hi"))) for each in topics),
            spoken(other, pubsub.unsubscribe(b"b")),
        ),
        "published-and-dies": talk(
            spoken(one, pubsub.subscribe(b"a")),
            spoken(other, pubsub.subscribe(b"b") + pubsub.publish(b"a", b"1") + pubsub.publish(b"b", b"2")),
            dies,
            spoken(one, pubsub.publish(b"b", b"3")),
            spoken(other, pubsub.publish(b"a", b"4") * 3),
            dies,
            leaves(one),
        ),
        "dies-later": talk(
            calls(1, ":recv!", 1, 900, "b"),
            calls(0, ":subscribe", 1, "b"),
            dies,
            calls(2, ":send!", 1, 900, "b", 2),
            dies,
        ),
        "many": talk(
            *(calls(n % 3, ":send!", n, 900, n % 5, n) for n in range(8)),
            *(calls((n + 1) % 3, ":recv!", n, 900, n % 5) for n in range(8)),
            *(calls(n, ":topic", 9, n) for n in range(3)),
            later(1.0),
        ),
    }


def access() -> Seeds:
    """Both clients are strangers; the token and the secret are those of fuzz_access.py."""
    token = "skw_" + 43 * "t"
    keys = [*Secrets("skw_" + 43 * "N").ids]
    question = {"from": "x", "address": "10.0.0.9:1", "at": "127.0.0.1:3443", "nonce": 32 * b"n", "keys": keys}
    hello = calls(0, ":hello", 1, {"token": token})
    return {
        "silent": talk(later(1.0), later(5.0)),
        "known": talk(
            hello,
            calls(0, ":send!", 2, 900, "a", "hi"),
            calls(0, ":send!", 3, 900, "a/b", 1),
            calls(0, ":recv!", 4, 900, "b"),
        ),
        "forbidden": talk(
            hello,
            calls(0, ":recv!", 2, 900, "safe"),
            calls(0, ":send!", 3, 900, "inbox", 1),
            calls(0, ":subscribe", 4, "safe"),
            calls(0, ":take!", 5, 900, "safe", "g"),
            calls(0, ":topic", 6, "safe"),
            calls(0, ":subscribe", 7, "c"),
            calls(0, ":nodes", 8),
        ),
        "stranger": talk(
            calls(0, ":recv!", 1, 900, "safe"), calls(0, ":ping", 2), calls(1, ":nothing", 1), calls(1, ":hello", 3, {})
        ),
        "wrong": talk(calls(0, ":hello", 1, {"token": "skw_" + 43 * "u"}), calls(0, ":ping", 2)),
        "bytes": talk(calls(0, ":hello", 1, {"token": token.encode(), "name": "x", "ack": True}), calls(0, ":ping", 2)),
        "peer": talk(
            calls(0, ":peer", 1, {"from": "x", "by": 0, "node": "id", "worker": 0, "version": 2, "token": token})
        ),
        "challenge": talk(
            calls(0, ":challenge", 1, question),
            calls(0, ":proof", 2, 32 * b"p"),
            calls(1, ":challenge", 1, question | {"keys": []}),
            calls(1, ":proof", 3, "no node"),
        ),
        "secret": talk(calls(0, ":hello", 1, {"token": "skw_" + 43 * "N"}), calls(0, ":join", 2, "127.0.0.1:3")),
        "both": talk(
            hello, calls(1, ":hello", 1, {"token": token}), leaves(0), calls(1, ":hello", 2, {"token": token})
        ),
        "fast": talk(hello, calls(0, ":ping", 2), again(0, 15), again(0, 15), later(0.3), again(0, 15)),
        "many": talk(hello, calls(0, ":recv!", 2, 9000, "b"), again(0, 9), later(1.0), calls(0, ":cancel", 3, 2)),
        "long": talk(bytes((0xE0, 0x41, 0xFF, 2, 0x93, 0)), later(5.0)),
        "half": talk(says(0, b"\xff\xff\x93"), later(1.0), later(1.0)),
    }
