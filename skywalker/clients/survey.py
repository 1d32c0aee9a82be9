"""The question which nodes there are, while it is under way."""

from __future__ import annotations

import reprlib
from typing import Any

from skywalker.clients.call import Call
from skywalker.errors import RemoteProtocolError
from skywalker.members import Member, Snapshot


class Pages:
    """What a node tells of the nodes of its cluster."""

    def __init__(self) -> None:
        self.nodes: list[dict[Any, Any]] = []
        self.version = ""
        self.question: tuple[str, ...] | None = ()
        """The arguments of the question for the next page, None once all have come."""

    def add(self, answer: Any) -> None:
        """Take in a page. Raises RemoteProtocolError for what is none."""
        match answer:
            case {"version": str(version), "nodes": [*nodes], "more": bool(more)} if all(
                isinstance(node, dict) and isinstance(node.get("id"), str) for node in nodes
            ):
                pass
            case _:
                raise RemoteProtocolError(f"the node's answer is not one to :nodes: {reprlib.repr(answer)}")
        if self.nodes and version != self.version:
            # What came is of two versions: once more from the beginning.
            self.nodes, self.question = [], ()
            return
        self.version = version
        self.nodes += nodes
        if more and not nodes:
            raise RemoteProtocolError("the node says that there are more nodes, and tells none")
        self.question = (nodes[-1]["id"],) if more else None


class Survey:
    """One question, page by page, or none."""

    def __init__(self) -> None:
        self.call: Call | None = None  # that asks for the next page
        self.begin()

    def begin(self) -> None:
        """Forget what was told before."""
        self.pages = Pages()
        self.latest = ""  # the version that was told of meanwhile

    @property
    def is_outdated(self) -> bool:
        """Whether what has come is known not to be the latest."""
        return self.latest not in ("", self.pages.version)

    def snapshot(self) -> Snapshot | None:
        """Return what the pages tell, None if there is nothing that can be used."""
        # A node that tells itself in another way than we know is left to be forwarded to.
        members = [member for member in map(Member.parse, self.pages.nodes) if member is not None]
        return Snapshot(members) if members else None
