"""The journal of a load as a history, for whoever wants to check it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from skywalker.journal.reading import KINDS, look
from tests.history import Call, History, Kind, Outcome

_MET = KINDS["outcome"].index("met")
_KINDS = {KINDS["method"].index(kind.value): kind for kind in (Kind.SEND, Kind.RECV)}


def history_of(journal: Path, timeout_s: float) -> History:
    """Return what the generators of a load without errors wrote down, none of whose lanes share a topic.

    All values of a topic are the same. Since its sends are made one after the other, and its recvs are, number k of the
    one must have met number k of the other: where a value was lost or came twice, they don't meet in time from then on.
    """
    found = look([journal])
    assert not found.problems
    calls: dict[tuple[int, Kind], list[tuple[float, float, int]]] = defaultdict(list)
    for segment in found.segments:
        records = segment.read()
        assert {*records["outcome"].tolist()} <= {_MET}
        fields = (records[name].tolist() for name in ("method", "token", "ended", "wait", "connection"))
        for method, token, ended, wait, connection in zip(*fields, strict=True):
            calls[token, _KINDS[method]].append((ended, wait, segment.header.worker << 32 | connection))
    return History([*itertools.chain.from_iterable(_numbered(*key, each, timeout_s) for key, each in calls.items())])


def _numbered(token: int, kind: Kind, calls: list[tuple[float, float, int]], timeout_s: float) -> Iterator[Call]:
    outcome = Outcome.TRUE if kind is Kind.SEND else Outcome.VALUE
    for number, (ended, wait, connection) in enumerate(sorted(calls)):
        yield Call(
            f"{kind} {number} on {token}", kind, str(token), str(connection), ended - wait, timeout_s,
            value=number, outcome=outcome, end=ended,
        )  # fmt: skip
