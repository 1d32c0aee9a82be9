"""TLS, between bytes from a stranger and what is made of them.

Any bytes, in any pieces, before, in and after a handshake, at either end: nothing but an ssl.SSLError is raised, and
what is kept of them and written for them is bounded. What one end writes, the other reads as it was, whatever pieces it
comes in; once a byte on its way is changed, nothing that was not written is ever read.

An input is operations of a byte, and what each needs.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.records import MAX_UNASKED, Records
from tests.fuzz.draw import Draw

MOST_OPERATIONS = 40
MOST_WRITTEN = MAX_UNASKED + 64 * 1024
"""Bytes that one end writes at once because of what it reads: what it may, and a handshake."""

CERTIFICATE = str(Path(__file__).with_name("certificate.pem"))
NAME = "fuzz.example"
SERVERS = [server_context(CERTIFICATE, minimum=minimum) for minimum in ("1.3", "1.2")]
CLIENT = client_context(CERTIFICATE)
OLD_CLIENT = client_context(CERTIFICATE)
OLD_CLIENT.maximum_version = ssl.TLSVersion.TLSv1_2


class End:
    """One end, what it is to be told, and what it has said and heard."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.said = bytearray()
        self.heard = bytearray()
        self.on_its_way = bytearray()  # to this end
        self.error: ssl.SSLError | None = None

    def take(self, data: bytes, other: End) -> None:
        """Have bytes arrive, and go on as far as that allows."""
        if self.error is not None:
            return
        records = self.records
        try:
            records.feed(data)
            if records.established or records.shake_hands():
                self.heard += records.read()
        except ssl.SSLError as error:
            self.error = error
        output = records.output()
        assert len(output) <= MOST_WRITTEN + 2 * len(data)
        other.on_its_way += output

    def write(self, data: bytes, other: End) -> None:
        """Say something, once hands are shaken."""
        if self.records.established and self.error is None:
            try:
                self.records.write(data)
            except ssl.SSLError as error:
                self.error = error
                return
            self.said += data
            other.on_its_way += self.records.output()


def check_input(data: bytes) -> None:
    """Hold the invariant for what happens to both ends."""
    draw = Draw(data)
    mode = draw.byte()
    server = End(Records(SERVERS[mode & 1], server_side=True))
    client = End(Records(OLD_CLIENT if mode & 2 else CLIENT, server_hostname=NAME))
    begin(client, server)
    for _ in range(MOST_OPERATIONS):
        if not draw:
            break
        operation = draw.byte()
        one, other = (server, client) if operation & 1 else (client, server)
        do(operation >> 1, one, other, draw)
        assert server.said.startswith(client.heard)
        assert client.said.startswith(server.heard)
    for end in (server, client):
        end.records.close()
        assert len(end.records.output()) <= MOST_WRITTEN


def begin(client: End, server: End) -> None:
    """The client says its first word."""
    client.records.shake_hands()
    server.on_its_way += client.records.output()


def do(operation: int, one: End, other: End, draw: Draw) -> None:
    """Do one thing to one end."""
    kind = operation % 8
    if kind <= 1:
        for _ in range(4):
            arrive(one, other, len(one.on_its_way))
            arrive(other, one, len(other.on_its_way))
    elif kind == 2:
        arrive(one, other, draw.byte())
    elif kind == 3:
        one.take(draw.text(), other)  # a stranger's
    elif kind == 4:
        text = draw.text()
        one.write(text * draw.byte(), other)
    elif kind == 5 and one.on_its_way:
        one.on_its_way[draw.byte() * 7 % len(one.on_its_way)] ^= 1 << draw.byte() % 8
    elif kind == 6:
        one.records.close()
        other.on_its_way += one.records.output()
    elif kind == 7 and draw.byte() & 1:
        one.take(b"", other)


def arrive(one: End, other: End, size: int) -> None:
    """Have some of what is on its way arrive."""
    piece = bytes(one.on_its_way[:size])
    del one.on_its_way[:size]
    if piece:
        one.take(piece, other)
