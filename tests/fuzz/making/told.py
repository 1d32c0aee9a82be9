"""Seeds of what nodes, files and people tell."""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any

import msgpack

from skywalker.journal import names
from skywalker.journal.header import CALLS, NAMES, Header
from tests.fuzz.making.steps import Seeds, packed


def silk() -> Seeds:
    def node(n: int, **changes: Any) -> dict[str, Any]:
        where = {"router": f"tcp://10.0.0.{n}:1", "pub": f"tcp://10.0.0.{n}:2"}
        return {"id": f"n{n}", "name": f"n{n}", "endpoints": where} | changes

    def said(n: int, type: str, data: Any = None, pause: int | str = "", **fields: Any) -> bytes:
        message = {"src": f"n{n}", "dest": "%", "id": f"m{n}{type}", "type": type, "data": data} | fields
        return f"{pause}{json.dumps(message)}".encode()

    lists = {"cluster": {"n2": node(2), "n3": node(3)}, "me": node(1)}
    talks = {
        "joined": [
            said(1, "_reply", lists, reply="@"),
            said(2, "_connect", node(2), 1),
            said(3, "_reply", node(3), reply="@"),
        ],
        "asked": [
            said(1, "_join", node(1)),
            said(1, "_ka", {"cluster": "00"}, 1, dest="_all"),
            said(1, "_members"),
            said(1, "_members", node(1)),
        ],
        "failed": [
            said(1, "_connect", node(1)),
            said(2, "_connect", node(2)),
            said(1, "_fail", {"id": "n2"}, 1),
            said(1, "_fail", {"id": "%"}, dest="_all"),
        ],
        "left": [
            said(1, "_join", node(1)),
            said(1, "_leave", dest="_all"),
            said(1, "_ka", {"cluster": "1"}),
            said(1, "_connect", node(1)),
        ],
        "moved": [
            said(1, "_join", node(1)),
            said(1, "_connect", node(2, id="n1")),
            said(3, "_connect", node(2, id="n3")),
            said(1, "_ka", None, 9),
        ],
        "refused": [
            said(1, "_reply", {"error": "full", "code": "stranger"}, reply="@"),
            said(1, "_join", node(1, id="%")),
            said(1, "_join", node(1, keepalive={"period": 0})),
        ],
        "ours": [said(1, "_join", node(1), src="%", id="@"), said(1, "_connect", node(1), src="%")],
        "request": [
            said(
                1,
                "_join",
                node(
                    1, messages={"add": {"attempts": 3, "period": 100}}, junction={"address": "10.0.0.1", "port": 3443}
                ),
            ),
            said(1, "add", [1]),
            said(1, "add", [1]),
        ],
        "slow": [
            said(1, "_join", node(1, keepalive={"period": 3_600_000})),
            said(2, "_join", node(2, keepalive={"period": 10})),
            said(1, "_ka", {}, 9),
        ],
    }
    seeds = {name: b"\n".join(lines) for name, lines in talks.items()}
    seeds["odd"] = b"\n".join(
        (b"[]", b"{}", b'{"src":"\\ud800"}', b'{"a":1e999}', b"[" * 200, b'{"src":"a","id":"b","type":"c","dest":NaN}')
    )
    return seeds


def address() -> Seeds:
    texts = {
        0: (
            "host",
            "host:3443",
            "[::1]:3443",
            "::1",
            ":3443",
            "fe80::1%eth0",
            "[fe80::1%eth0]:1",
            "a:99999",
            "1.2.3.4:0",
            "a b",
        ),
        1: (
            "a:1,b:2",
            "silk://h:3444,g:1",
            "silk://h?keys=f",
            "dns://name:3443",
            "dns://_s._tcp.name?server=127.0.0.1:53",
            "dns://1.2.3.4",
            "consul://h:8500/s?token=*",
            "consul://h/s?tls=true&ca=a&cert=b&key=c&token=*",
            "consul://h/a%2Fb?token=*&token=*",
            "consul://*@h/s",
            "dns://[::1/",
        ),
        2: ("tcp://1.2.3.4:5", "ipc:///tmp/x", "host", "[::1]:5", "*:1", "tcp://*:*", "0.0.0.0:3444"),
        3: ("5", "500ms", "5s", "2m", "1.5h", "1e3"),
        4: ("4096", "64KiB", "1MiB", "2GiB", "1kb"),
        5: ("1000", "1_000", "1e8", "40k", "100M", "1e99"),
        6: ("10,100", "32..512", "1..1", "2..1", "1e9", "0"),
        7: ("127.0.0.1:53", "::1", "name:53"),
        8: ("1/16", "64MiB/60s", "1/0", "0/1", "1MiB/"),
    }
    return {f"{form}-{n}": bytes((form,)) + text.encode() for form, all in texts.items() for n, text in enumerate(all)}


def config() -> Seeds:
    hashed = "sha256:" + "0f" * 32
    files = {
        "empty": [],
        "usual": [
            'bind = "0.0.0.0"',
            "port = 0",
            'drain_timeout_s = "500ms"',
            "[limits]",
            'waiting_bytes = "64MiB"',
            "max_calls = 7",
        ],
        "cluster": ["[cluster]", 'join = "a:1,b:2"', "consul = true", "health_port = 1", 'advertise = "h:1"'],
        "pubsub": ['pubsub_bind = ":61626"', "pubsub_port = 5"],
        "journal": [
            'journal = "/x"',
            'journal_sample = "1/16"',
            'journal_rotate = "64MiB/60s"',
            'journal_keep = "1GiB"',
        ],
        "tls": [
            'tls_cert = "c.pem"',
            'tls_key = "k.pem"',
            'tls_ca = "ca.pem"',
            'tls_minimum = "1.2"',
            'unix = "/x"',
            "open = true",
        ],
        "access": [
            "[access.web]",
            f'token = "{hashed}"',
            'send = ["jobs/*", "jobs", {topic = 7}]',
            'recv = ["*"]',
            "rate = 10",
            "[access.ops]",
            'certificate = ["a.example"]',
            'user = [0, "root"]',
            'network = "10.0.0.0/8"',
            "admin = true",
            "node = true",
            "[access.anyone]",
            'subscribe = ["*"]',
            "in_flight = 5",
        ],
        "wrong": ['port = "x"', "prot = 1", "[limits]", "max_calls = nan"],
        "types": [
            "name = 1979-05-27T07:32:00Z",
            'bind = [1, {a = "b"}]',
            "workers = 0x10",
            "drain_timeout_s = inf",
            "port = 1e3",
        ],
        "dotted": ["limits.max_calls = 1", '"cluster"."join" = ""', "access.a.token = []"],
    }
    seeds = {name: b"\0" + "\n".join(lines).encode() for name, lines in files.items()}
    environment = ["PORT=1", "LIMITS=1", "DRAIN_TIMEOUT=5s", "ADMIN=no", "WAITING_BYTES=1MiB", "NAME=x"]
    seeds["environment"] = b"\x80" + "\n".join(f"SKYWALKER_{each}" for each in environment).encode()
    return seeds


def journal() -> Seeds:
    """The first byte names the file, and has a header put before what follows where that is not its own."""
    calls_file, names_file, with_calls, with_names = 0, 2, 3, 8
    header = Header(CALLS, "node", "red", "red", 1, "r1", 10**18, 10**18, 16, 3)
    record = struct.Struct("<dqfIIBBBB")
    records = b"".join(
        record.pack(n / 8, n % 3 - 1, n / 100, 10 * n, n, 1 + n % 4, n % 9, n % 3, 1 + n % 2) for n in range(9)
    )
    odd = record.pack(float("nan"), -(2**63), float("inf"), 2**32 - 1, 0, 255, 255, 255, 255) + record.pack(
        -1e300, 1, -1.0, 0, 0, 0, 0, 0, 0
    )
    entries = (
        names.pack(5, msgpack.packb("jobs")) + names.pack(-7, msgpack.packb([1, {"a": b"b"}])) + names.pack(1, b"\xc1")
    )
    return {
        "whole": bytes((calls_file, 0)) + header.pack() + records,
        "records": bytes((with_calls, 4)) + records,
        "torn": bytes((with_calls, 0)) + records[:-5],
        "odd": bytes((with_calls, 1)) + odd + records[:64],
        "names": bytes((with_names, 0)) + entries,
        "torn-names": bytes((with_names, 0)) + entries[:-1],
        "whole-names": bytes((names_file, 0)) + dataclasses.replace(header, kind=NAMES).pack() + entries,
        "begun": bytes((1, 0)) + header.pack()[:100],
        "cut": bytes((calls_file, 0)) + header.pack()[:100],
        "another": bytes((calls_file, 0)) + b"another file",
        "empty": bytes((calls_file, 0)),
    }


def peer() -> Seeds:
    def node(n: int, **changes: Any) -> dict[str, Any]:
        told = {"id": f"n{n}", "name": "x", "address": f"10.0.0.{n}", "port": 3443, "workers": 2, "steering": False}
        return told | {"tokens": [-n, 5 * n, 2**62 + n]} | changes

    greeting = {"version": "0", "node": "n1", "worker": 0, "tokens": {0: [1, 5], 1: [3]}, "ring": "ab"}
    greeting |= {key: value for key, value in node(1).items() if key not in ("id", "tokens")}
    instances = [
        {"Node": {"Address": "10.0.0.1"}, "Service": {"Address": f"10.0.0.{n}", "Port": 3443}} for n in range(2)
    ]
    told: dict[str, Any] = {
        "member": node(1),
        "members": [node(n) for n in range(1, 5)],
        "copies": [node(1), node(2, tokens=node(1)["tokens"])],
        "ipv6": node(1, address="fe80::1%eth0", port=65535, workers=1024),
        "wrong": [
            node(1, port=0),
            node(2, workers=True),
            node(3, tokens=[]),
            node(4, tokens=[1.5]),
            node(5, address="host"),
        ],
        "greeting": greeting,
        "unstated": {key: value for key, value in greeting.items() if key not in ("address", "port")},
        "silk": {
            "id": "a",
            "endpoints": {"router": "tcp://h:1", "pub": "ipc:///x"},
            "junction": {"address": "h", "port": 1},
        },
        "refusal": msgpack.ExtType(0x45, packed("busy", "no room", {"limit": 5})),
        "marks": {"$bin": "aGk=", "$map": [[1, 2]], "$str": b"\xff", 5: msgpack.ExtType(7, b"x"), "f": float("nan")},
    }
    seeds = {name: b"\0" + msgpack.packb(value) for name, value in told.items()}
    seeds |= {
        "consul": b"\x80\0" + b"7\n" + json.dumps(instances).encode(),
        "consul-bare": b"\x80\0"
        + b"0\n"
        + json.dumps([{"Node": {"Address": "h"}, "Service": {"Address": "", "Port": 0}}]).encode(),
        "consul-empty": b"\x80\0" + b"1\n[]",
        "consul-refuses": b"\x80\3" + b"1\nACL not found",
        "consul-odd": b"\x80\0" + b"x\n{}",
    }
    return seeds


def records() -> Seeds:
    """Operations of two bytes at most; the lowest bit says at which end."""
    flow, piece, stranger, write, damage, close, end = 0, 4, 6, 8, 10, 12, 14
    hello = bytes.fromhex("160301002f0100002b0303") + bytes(32) + bytes.fromhex("000002130101000000")
    programs = {
        "talk": [flow, write, 3, *b"abc", 5, flow, write | 1, 2, *b"yo", 200, flow, close, flow, end, 1],
        "pieces": [
            piece | 1,
            5,
            piece | 1,
            200,
            piece | 1,
            255,
            piece,
            9,
            piece,
            255,
            flow,
            write,
            1,
            65,
            255,
            piece | 1,
            30,
            flow,
        ],
        "stranger": [stranger | 1, len(hello), *hello, flow],
        "http": [stranger | 1, 18, *b"GET / HTTP/1.1\r\n\r\n", flow],
        "frame": [stranger | 1, 8, *b"\0\6\x92\xa5:pi", end | 1, 1],
        "damaged-handshake": [damage | 1, 9, 3, flow],
        "damaged-record": [flow, write, 3, *b"abc", 1, damage | 1, 2, 1, flow],
        "closed-early": [close, flow, close | 1, flow, end, 1, end | 1, 1],
        "key-updates": [flow, stranger | 1, 5, 0x17, 3, 3, 0, 0, flow],
    }
    return {f"{name}-{mode}": bytes((mode, *program)) for name, program in programs.items() for mode in (0, 1 | 2)}
