"""The nodes of a soak, and what its programs are told of them."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import skywalker
from skywalker import embedding
from skywalker.access import token
from skywalker.cli.demo_cluster.ports import HOST, free_ports
from skywalker.limits import MIB
from skywalker.silk import Keys
from skywalker.tls.contexts import client_context
from tests.authority import Authority
from tests.helpers import eventually, time_factor
from tests.workers.wire_client import ConnectionEnded, WireClient

WORKERS: Final = 2
"""Of each node: enough to have a sibling that hears what becomes of another."""

DRAIN_S: Final = 5.0

TOUCHED: Final = 200
"""Topics, among which each worker owns some."""

TIGHT: Final[dict[str, Any]] = {
    "half_frame_s": 3.0,
    "unread_output_s": 5.0,
    "idle_probe_s": 10.0,
    "subscriber_buffer": MIB,
}
"""Limits that are reached in seconds, so that what happens at them happens often."""

ROTATED: Final[dict[str, Any]] = {"journal_rotate": "1MiB/5s", "journal_keep": 16 * MIB}

NAMES: Final = ("spared", "battered", "third", "fourth")
"""The first is never disturbed: whatever grows there by use has the whole time for it."""


USER, RUFFIAN, NODE = "user.soak", "ruffian.soak", "node.soak"
"""Names in certificates."""

SECRET, TOKEN = token.new(), token.new()
"""That of the nodes, and that of users who show no certificate."""

ACCESS: Final = f"""
[access.nodes]
token = "{token.hash_of(SECRET)}"
node = true
[access.users]
certificate = "{USER}"
token = "{token.hash_of(TOKEN)}"
user = {os.getuid()}
send = ["*"]
recv = ["*"]
publish = ["*"]
subscribe = ["*"]
admin = true
[access.ruffians]
certificate = "{RUFFIAN}"
recv = ["ruffian-*"]
publish = ["ruffian-*"]
subscribe = ["*"]
rate = 1000
in_flight = 1000
connections = 50
"""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the doors of a node are."""

    name: str
    pid: int
    address: str
    pubsub: str
    admin: str
    silk: str
    unix: str


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a program is told."""

    places: tuple[Place, ...]
    authority: str = ""  # the file of who has signed certificates; if there is none, no TLS is spoken
    shown: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)  # certificates and keys, by name
    token: str = ""

    @property
    def where(self) -> str:
        """All nodes, as connect() takes them."""
        return ",".join(place.address for place in self.places)

    def context(self, name: str = USER) -> ssl.SSLContext | None:
        """Return how to speak TLS, with the certificate of that name, or none if it is empty."""
        return client_context(self.authority, *self.shown.get(name, ())) if self.authority else None

    def dial(self, address: str, tls: ssl.SSLContext | None, timeout_s: float = 5.0) -> socket.socket:
        """Connect to one of the doors. Raises OSError."""
        sock = socket.create_connection(split(address), timeout_s)
        try:
            return tls.wrap_socket(sock, server_hostname=HOST) if tls else sock
        except BaseException:
            sock.close()
            raise

    def http(self, place: Place, timeout_s: float = 10.0) -> http.client.HTTPConnection:
        """Return a connection, yet to be made, to the admin door."""
        host, port = split(place.admin)
        context = self.context()
        if context is not None:
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout_s)

    def text(self) -> str:
        """Return it as an argument."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def parse(text: str) -> Stage:
        """Return what text() was of."""
        fields = json.loads(text)
        return Stage(**fields | {"places": tuple(Place(**place) for place in fields["places"])})


@dataclasses.dataclass
class Nodes:
    """The nodes while they run."""

    running: list[embedding.Node]
    stage: Stage

    @property
    def battered(self) -> Sequence[embedding.Node]:
        """Those to which things are done: all but the first, unless it is alone."""
        return self.running[1:] or self.running


@contextlib.contextmanager
def nodes(count: int, scratch: Path, *, tls: bool = False) -> Iterator[Nodes]:
    """Run so many nodes with every door open, one cluster by Silk. Raises AssertionError if they are not.

    With `tls` that is all they speak, and only to those in ACCESS.
    """
    ports = free_ports(count)
    settings, stage = _secured(scratch) if tls else ({}, Stage(()))
    settings |= {"silk_join": ",".join(f"{HOST}:{port}" for port in ports), "drain_timeout_s": DRAIN_S, **TIGHT}
    with contextlib.ExitStack() as stack:
        running: list[embedding.Node] = []
        places = []
        for name, port in zip(NAMES, ports, strict=False):
            unix, silk = str(scratch / f"{name}.sock"), f"{HOST}:{port}"
            # A journal remembers up to 100,000 topics: where memory is to be flat it would grow for long until then.
            journal = {} if len(ports) > 1 and not running else {"journal": str(scratch / name / "journal"), **ROTATED}
            node = embedding.start(
                workers=WORKERS, name=name, state_dir=str(scratch / name), **journal,
                pubsub=True, admin=True, unix=unix, silk=silk, **settings,
            )  # fmt: skip
            stack.callback(node.stop)
            running.append(node)
            places.append(Place(name, node.pid, node.address, node.pubsub_address, node.admin_address, silk, unix))
        found = Nodes(running, dataclasses.replace(stage, places=tuple(places)))
        eventually(lambda: all(_sees(found.stage, place) == count for place in places), 20.0)
        yield found


def _secured(scratch: Path) -> tuple[dict[str, Any], Stage]:
    """Return what nodes and programs are told so that they know each other."""
    authority = Authority(scratch)
    cert, key = authority.sign(NODE, HOST)
    file = scratch / "access.toml"
    file.write_text(ACCESS)
    silk_keys = scratch / "silk.keys"
    Keys.generate().save(silk_keys)
    settings = {
        "tls_cert": cert, "tls_key": key, "tls_ca": authority.ca, "config_file": file, "secret": SECRET,
        "silk_keys": str(silk_keys),
    }  # fmt: skip
    return settings, Stage((), authority.ca, {name: authority.sign(name) for name in (USER, RUFFIAN)}, TOKEN)


def _sees(stage: Stage, place: Place) -> int:
    with skywalker.connect(place.address, direct=False, tls=stage.context()) as client:
        return len(client.nodes())


def touch(found: Nodes) -> None:
    """Have every worker of every node call topics of all others: then there are all links that there can be.

    Raises AssertionError if a worker cannot be met, which is one that does not serve.
    """
    tls = found.stage.context()
    for place in found.stage.places:
        met: set[int] = set()
        deadline = time.monotonic() + 20 * time_factor()
        while len(met) < WORKERS:
            assert time.monotonic() < deadline, f"no more than the workers {sorted(met)} of {place.name} answer"
            with (
                contextlib.suppress(OSError, ConnectionEnded),
                WireClient(found.stage.dial(place.address, tls)) as client,
            ):
                worker = client.worker()
                if worker not in met:
                    for number in range(TOUCHED):
                        client.call(":send!", number, 0, f"touch-{number}", None)
                    client.replies(TOUCHED)
                    met.add(worker)


def split(address: str) -> tuple[str, int]:
    """Return host and port."""
    host, _, port = address.rpartition(":")
    return host, int(port)
