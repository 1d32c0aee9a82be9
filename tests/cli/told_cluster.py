"""Nodes that answer :hello and :nodes as a test tells them: rings of any size, and nodes that see different ones."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import socketserver
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack

from skywalker.address import Address
from skywalker.members import Member, Snapshot
from tests.clients.scripted import error, framed

PAGE = 7
"""Members told at a time, so that small clusters already take several pages."""


@dataclasses.dataclass
class ToldNode:
    """What one node answers."""

    member: Member
    ring: Snapshot
    hello: dict[str, Any] = dataclasses.field(default_factory=dict)  # besides, or instead of, what is true
    silent: bool = False
    lists: list[Any] | None = None  # in place of its ring's members
    knows_nodes: bool = True
    asked: list[str] = dataclasses.field(default_factory=list)

    def answer(self, method: str, arguments: Sequence[Any]) -> Any:
        self.asked.append(method)
        if method == ":hello":
            return {"node": self.member.id, "ring": self.ring.version} | self.hello
        if method == ":nodes" and self.knows_nodes:
            maps = [each.as_map() for each in self.ring]
            if self.lists is not None:
                return {"version": "-", "nodes": self.lists, "more": False}
            later = [each for each in maps if not arguments or each["id"] > arguments[0]]
            return {"version": self.ring.version, "nodes": later[:PAGE], "more": len(later) > PAGE}
        return error("unknown-method", "there is no such method")


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            while len(head := self.rfile.read(2)) == 2:
                method, id, *arguments = msgpack.unpackb(
                    self.rfile.read(int.from_bytes(head, "big")), strict_map_key=False
                )
                if not self.server.node.silent:
                    self.wfile.write(framed([method, id, self.server.node.answer(method, arguments)]))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    node: ToldNode


def tokens(luck: random.Random, count: int = 32) -> tuple[int, ...]:
    """Return random tokens, sorted."""
    return tuple(sorted(luck.getrandbits(64) - 2**63 for _ in range(count)))


@contextlib.contextmanager
def told_cluster(count: int, names: Sequence[str] = (), workers: int = 2) -> Iterator[list[ToldNode]]:
    """Run nodes that agree, unless the test changes what they tell; their ids are in the order of their names."""
    luck = random.Random(count)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(_Server(("127.0.0.1", 0), _Handler)) for _ in range(count)]
        members = [
            Member(
                f"{number:08x}-id",
                names[number] if names else f"node{number + 1}",
                Address("127.0.0.1", server.server_address[1]),
                workers,
                True,
                tokens(luck),
            )
            for number, server in enumerate(servers)
        ]
        ring = Snapshot(members)
        nodes = [ToldNode(member, ring) for member in members]
        for server, node in zip(servers, nodes, strict=True):
            server.node = node
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        yield nodes
