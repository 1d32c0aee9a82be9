"""Who is in a cluster, and whether its members see each other: each is asked."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from skywalker.errors import Unreachable
from skywalker.silk import NodeInfo, ask

AT_ONCE: Final = 32
"""Members that are asked at a time, so that those that do not answer take the time of one or two."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """One member."""

    node: NodeInfo
    answers: bool  # else no more is known of it than others say
    problem: str = ""  # in words


def survey(endpoint: str, keys: Path | None, timeout: float) -> list[Found]:
    """Ask whoever is at an endpoint, and then all members that it sees, in `timeout` seconds each.

    Raises Unreachable if nobody answers at the endpoint.
    """
    first = ask(endpoint, keys=keys, timeout=timeout)
    everyone = {node.id: node for node in first}
    look = functools.partial(_look, everyone=everyone, keys=keys, timeout=timeout)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return [Found(first[0], answers=True), *threads.map(look, first[1:])]


def _look(node: NodeInfo, everyone: dict[str, NodeInfo], keys: Path | None, timeout: float) -> Found:
    try:
        seen = ask(node.router, keys=keys, timeout=timeout)
    except Unreachable:
        return Found(node, answers=False, problem=f"did not answer within {timeout:g} s")
    if seen[0].id != node.id:
        return Found(node, answers=False, problem="is not who answers at its endpoint")
    return Found(seen[0], answers=True, problem=_difference(seen, everyone))


def _difference(seen: Sequence[NodeInfo], everyone: dict[str, NodeInfo]) -> str:
    """Return in words what else a member sees than the first one does."""
    ids = {node.id for node in seen}
    missed = [node.name or id for id, node in everyone.items() if id not in ids]
    more = [node.name or node.id for node in seen if node.id not in everyone]
    parts = (f"does not see {', '.join(missed)}" if missed else "", f"also sees {', '.join(more)}" if more else "")
    return " and ".join(part for part in parts if part)
