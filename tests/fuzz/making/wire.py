"""Seeds of what knows no connections: frames, values, the junction."""

from __future__ import annotations

from typing import Any

import msgpack

from tests.data import golden_frames, golden_tokens
from tests.fuzz.making.steps import Seeds, packed
from tests.wire.streams import framed


def frames() -> Seeds:
    seeds = {f"golden-{n}": b"\x03" + each.wire for n, each in enumerate(golden_frames())}
    bodies = {
        "deep": b"\x91" * 512 + b"\xc0",
        "too-deep": b"\x91" * 514 + b"\xc0",
        "many": packed(*range(20)),
        "long-headers": b"\xdd\0\0\0\3\xdb\0\0\0\1a\xd3" + bytes(8) + b"\xc6\0\0\0\2hi",
        "maps": packed(":hello", 1, {"name": "a", 2: [None, True, 1.5, {"b": b"c"}]}),
        "extensions": packed(":send!", 1, 0, msgpack.ExtType(5, b"abc"), msgpack.Timestamp(1, 2), b"x" * 40),
        "lying-length": b"\x93\xdb\xff\xff\xff\xff\x01\x02",
        "lying-count": b"\xdd\xff\xff\xff\xff\x01\x02",
        "empty-array": b"\x90",
        "never-used": b"\x93\xc1\x01\x02",
    }
    seeds |= {name: b"\x07" + framed(body) for name, body in bodies.items()}
    seeds["stream"] = b"\x05" + b"".join(each.wire for each in golden_frames())
    seeds["half"] = b"\x01" + golden_frames()[0].wire[:-3]
    seeds["body-only"] = b"\x01" + packed(":recv!", 1, 1000, "foo")
    seeds["wide"] = b"\x02" + b"".join(b"\0\0" + each.wire for each in golden_frames()[:3])
    return seeds


def values() -> Seeds:
    topics: list[Any] = [each.topic for each in golden_tokens()[:12]]
    odd = [
        *(
            b"\xcc\x05",
            b"\xcd\0\x05",
            b"\xd3" + bytes(7) + b"\x05",
            b"\xd0\xff",
            b"\xd1\xff\x80",
            b"\xd2\xff\xff\x7f\xff",
        ),
        *(b"\xd9\x01a", b"\xda\0\x01a", b"\xdb\0\0\0\x01a", b"\xc5\0\x01a", b"\xc7\x01\x05a", b"\xc8\0\x02\x05ab"),
        *(b"\xdc\0\x02\x01\xcc\x02", b"\xde\0\x01\xd9\x01a\xcd\0\x01", b"\xdf\0\0\0\0", b"\xdd\0\0\0\0"),
        *(
            msgpack.packb(each)
            for each in (0, 1000, 86_400_000, 86_400_001, 2**64 - 1, -1, 1.5, -0.0, 1e300, True, None)
        ),
        *(b"\xcb\x7f\xf8" + bytes(6), b"\xcb\x7f\xf0" + bytes(6), b"\xca\x3f\xc0\0\0", b"\xd6\xff\0\0\0\x01"),
        msgpack.packb({"a": [1, {"b": b"c"}], 7: "x" * 40}),
    ]
    seeds = {f"golden-{n}": each for n, each in enumerate(topics)}
    edges = sorted(
        {sign * (2**bits + by) for bits in (5, 7, 8, 15, 16, 31, 32, 63) for by in (-1, 0, 1) for sign in (-1, 1)}
    )
    seeds["unsigned"] = b"".join(b"\xcf" + each.to_bytes(8, "big") for each in edges if each >= 0)
    seeds["signed"] = b"".join(
        b"\xd3" + each.to_bytes(8, "big", signed=True) for each in edges if -(2**63) <= each < 2**63
    )
    sizes = (0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 255, 256)
    for head, extra in ((0xDB, 0), (0xC6, 0), (0xC9, 1), (0xDD, 0)):
        lengths = (bytes((head,)) + size.to_bytes(4, "big") + bytes(size + extra) for size in sizes)
        seeds[f"lengths-{head:x}"] = b"".join(lengths)
    seeds["odd"] = b"".join(odd)
    seeds |= {f"odd-{n}": each for n, each in enumerate(odd)}
    seeds["long"] = msgpack.packb("x" * 4094) + msgpack.packb("x" * 4090)
    return seeds


def junction() -> Seeds:
    send, recv, take, subscribe, publish, took, lost, leave = 3, 0, 1, 5, 4, 9, 10, 6
    refused, resumed = 0x80, 0x40
    programs = {
        "meet": [send, recv, took],
        "listener-first": [recv, recv, take, send, took, lost, took],
        "lost-and-resumed": [send, recv, resumed | lost, recv, took],
        "lost-for-good": [send, recv, lost],
        "refused": [send, refused | recv, recv, took],
        "subscribers": [subscribe, subscribe, send, took, lost, publish, leave],
        "crowd": [send] * 8 + [recv] * 3 + [took, resumed | lost, resumed | lost] + [leave] * 4,
        "takers": [take, 2, take, 2, send, send, took, took, refused | send],
        "sent-then-subscribed": [send, send, subscribe, took, resumed | lost, refused | subscribe],
    }
    seeds = {
        name: bytes(byte for at, each in enumerate(program) for byte in (each, 3 * (at % 2)))
        for name, program in programs.items()
    }
    seeds["deadlines"] = bytes((0x10, 0x20, 0x7F, 0x81, 0xC4, 0x08, 0x07, 0xC1, 0x90, 0xDF, 0x20, 0x20, 0xDF))
    return seeds
