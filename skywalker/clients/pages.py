"""The answer to `:nodes`, page by page, until the whole of it is of one version."""

from __future__ import annotations

from typing import Any

from skywalker.errors import RemoteProtocolError


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
                raise RemoteProtocolError(f"the node's answer is not one to :nodes: {answer!r:.100}")
        if self.nodes and version != self.version:
            # What came is of two versions: once more from the beginning.
            self.nodes, self.question = [], ()
            return
        self.version = version
        self.nodes += nodes
        if more and not nodes:
            raise RemoteProtocolError("the node says that there are more nodes, and tells none")
        self.question = (nodes[-1]["id"],) if more else None
