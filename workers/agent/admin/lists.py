"""Who waits on which topic, and who is connected: the bodies of /api/topics and /api/connections."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from skywalker.journal.topic_text import beginning_text, topic_text
from workers.agent.admin.questions import Answers, Questions
from workers.agent.admin.samples import Samples

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
"""Topics or connections in one answer."""

MAX_CLOSED: Final = 100
"""Connections that were closed last, in one answer."""

Row = dict[str, Any]


def _waits(row: Row) -> float:
    return -math.inf if row["since"] is None else float(row["since"])


TOPICS: Final[Mapping[str, Callable[[Row], float]]] = {"waiting": _waits, "rate": lambda row: row["rate"]}
"""What topics can be ordered by: the biggest first."""

CONNECTIONS: Final[Mapping[str, Callable[[Row], float]]] = {
    "unread": lambda row: row["unread_bytes"],
    "waiting": lambda row: row["waiting"],
    "age": lambda row: row["age"],
}
"""What connections can be ordered by: the biggest first."""


async def topics(questions: Questions, samples: Samples, order: str, limit: int) -> bytes:
    """Return the first topics of all workers as JSON."""
    answers = await _ask(questions, "topics", order, limit)
    rows = [_shown(row) for row in heapq.nlargest(limit, _merged(answers).values(), TOPICS[order])]
    return _body(
        {"order": order, **_sums(answers, "topics_in_all"), "silent": _silent(answers, samples), "topics": rows}
    )


def _merged(answers: Answers) -> dict[str, Row]:
    """Return what the workers say of each topic: calls wait where it is owned, and are sampled where they came in."""
    rates: Counter[str] = Counter()
    loads: Counter[str] = Counter()  # by slot
    for _, answer in answers.given:
        rates.update(answer["rates"])
        loads.update(answer["loads"])
    merged: dict[str, Row] = {}
    for slot, answer in answers.given:
        for row in answer["topics"]:
            topic = row["topic"]
            if topic not in merged or row["owned"]:
                owner, rate = row["owner"], float(rates[topic])
                load = 0 if owner is None else loads[str(owner)]
                share = min(1.0, rate / load) if load else None
                merged[topic] = {**row, "worker": slot if owner is None else owner, "rate": rate, "share": share}
    return merged


def _shown(row: Row) -> Row:
    """Return what is shown of a topic: of one that the worker has cut, its beginning."""
    shown = {key: value for key, value in row.items() if key not in ("owned", "owner")}
    topic, cut = row["topic"].encode("latin-1"), row["cut"]
    text = beginning_text(topic.removesuffix(bytes.fromhex(cut))) if cut else topic_text(topic)
    return {**shown, "topic": text}


async def connections(questions: Questions, samples: Samples, order: str, limit: int) -> bytes:
    """Return the first connections of all workers as JSON, and those that were closed last."""
    answers = await _ask(questions, "connections", order, limit)
    everyone = [{"worker": slot, **row} for slot, answer in answers.given for row in answer["connections"]]
    rows = heapq.nlargest(limit, everyone, CONNECTIONS[order])
    closed = [{"worker": slot, **row} for slot, answer in answers.given for row in answer["closed"]]
    closed.sort(key=lambda row: -row["time"])
    silent = _silent(answers, samples)
    sums = _sums(answers, "connections_in_all")
    return _body({**sums, "silent": silent, "connections": rows, "closed": closed[:MAX_CLOSED]})


async def _ask(questions: Questions, what: str, order: str, limit: int) -> Answers:
    # Of two lengths only, or each length would be a question of its own to workers that have other things to do.
    asked = DEFAULT_LIMIT if limit <= DEFAULT_LIMIT else MAX_LIMIT
    return await questions.ask({"what": what, "order": order, "limit": asked})


def _sums(answers: Answers, in_all: str) -> dict[str, int]:
    return {name: sum(answer[name] for _, answer in answers.given) for name in (in_all, "looked_at")}


def _silent(answers: Answers, samples: Samples) -> list[int]:
    """Return the slots of workers that did not answer, or that cannot be asked yet."""
    heard = {slot for slot, _ in answers.given}
    return sorted({*answers.silent, *({worker.slot for worker in samples.latest.live} - heard)})


def _body(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
