"""The page about all this names what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.admin.asking import Asker
from workers.agent.admin import lists, ring, transport
from workers.worker.inspection import MAX_LOOKED_AT

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
TEXT = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)


def keys(document: Any) -> set[str]:
    """Return the keys of a document and of the documents in it, but for those that are labels' values."""
    if isinstance(document, list):
        return set().union(*map(keys, document))
    if not isinstance(document, dict):
        return set()
    return {*document}.union(*(keys(value) for value in document.values()))


def test_every_metric_is_named_with_its_type_and_labels(admin: Asker) -> None:
    rows = re.findall(r"^\| `(skywalker_\w+)` \| (\w+) \| ([\w, ]*) ?\|", PAGE, re.M)
    documented = {(name, kind, frozenset(re.findall(r"\w+", labels))) for name, kind, labels in rows}
    _, _, body = admin.ask("/metrics")
    text = body.decode()
    labels: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            names = {*re.findall(r'(\w+)="', line)} - {"le"}
            labels.setdefault(re.split(r"[{ ]", line)[0], set()).update(names)
    labels["skywalker_ring_unproven"] = {"address"}  # there is none: test_strangers.py of the cluster has some
    served = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        of = labels.get(name) or labels.get(f"{name}_bucket") or set()
        served.add((name, "info" if name.endswith("_info") else kind, frozenset(of)))
    assert documented == served


def test_every_key_of_every_document_is_named(admin: Asker) -> None:
    words = {word for code in re.findall(r"`([^`]+)`", TEXT) for word in re.findall(r"\w+", code)}
    state = admin.json("/api/state")
    for labelled in ("calls", "closes", "limits_hit", "errors"):
        state[labelled] = 0
    for path, document in (
        ("/api/state", state),
        *((path, admin.json(path)) for path in ("/api/topics", "/api/connections", "/api/ring", "/api/history")),
    ):
        assert path in PAGE
        missing = keys(document) - words - {"junction", "pubsub", "admin"}
        assert not missing, path


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"{transport.MAX_CONNECTIONS} connections" in PAGE
    assert f"| {transport.IDLE_S:g} s | for a request" in PAGE
    assert f"| {transport.UNREAD_S:g} s | for a client to read" in PAGE
    assert f"limit is 1 to {lists.MAX_LIMIT}" in PAGE
    assert f"no more than {MAX_LOOKED_AT:,} of them" in PAGE
    assert f"There are {ring.MAX_ARCS} at most" in PAGE
