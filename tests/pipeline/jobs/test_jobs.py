"""Each job against the same figures, added up call by call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from skywalker.pipeline.jobs.balance import balance
from skywalker.pipeline.jobs.capacity import capacity
from skywalker.pipeline.jobs.counts import keys
from skywalker.pipeline.jobs.forwarding import forwarding
from skywalker.pipeline.jobs.latency import latency
from skywalker.pipeline.jobs.owners import Owners
from skywalker.pipeline.jobs.timeouts import timeouts
from skywalker.pipeline.jobs.topics import topics
from skywalker.pipeline.jobs.unmatched import unmatched
from tests.pipeline.jobs.records import Record, a_ring, by_chance, table, us_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """In groups of which some are of one."""
    return by_chance(1500, 1)


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def calls(records: Iterable[Record]) -> int:
    return sum(record.sample for record in records)


def grouped(records: Iterable[Record], key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    groups = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return dict(groups)


def minute(record: Record, seconds: int = 60) -> int:
    return record.time // (seconds * 1_000_000) * seconds * 1_000_000


def nearest_rank(records: Sequence[Record], mille: int) -> int:
    total, so_far = calls(records), 0
    for record in sorted(records, key=lambda record: record.wait_us):
        so_far += record.sample
        if so_far * 1000 >= total * mille:
            return record.wait_us
    raise AssertionError("nobody waited")


def by_measure(records: list[Record], key: Callable[[Record], Any]) -> dict[tuple[Any, str], list[Record]]:
    met = grouped((record for record in records if record.outcome in ("met", "prompt")), key)
    prompt = grouped((record for record in records if record.outcome == "prompt"), key)
    return {(group, "wait"): found for group, found in met.items()} | {
        (group, "hand-off"): found for group, found in prompt.items()
    }


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "within 1 %"])
def test_waits_of_workers_by_the_minute(spark: SparkSession, records: list[Record], exact: bool) -> None:
    wanted = by_measure(records, lambda record: (minute(record), record.node, record.worker))
    found = {
        ((us_of(row["time"]), row["node"], row["worker"]), row["measure"]): row
        for row in rows(latency(table(spark, records), by=("minute", "worker"), exact=exact))
    }
    assert found.keys() == wanted.keys()
    for key, group in wanted.items():
        row = found[key]
        assert row["calls"] == calls(group)
        assert row["max_us"] == max(record.wait_us for record in group)
        assert row["mean_us"] == pytest.approx(sum(record.wait_us * record.sample for record in group) / calls(group))
        for name, mille in {"p50_us": 500, "p90_us": 900, "p99_us": 990, "p999_us": 999}.items():
            truth = nearest_rank(group, mille)
            # Half a µs more for what is rounded to one.
            assert row[name] == truth if exact else abs(row[name] - truth) <= 0.01 * truth + 0.5, (key, name)
        assert row["p50_us"] <= row["p90_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"]


def test_topics_are_told_with_what_became_of_their_calls(spark: SparkSession, records: list[Record]) -> None:
    wanted = []
    for token, group in grouped(records, lambda record: record.token).items():
        wanted.append(
            {
                "token": token,
                "topic": None,
                "calls": calls(group),
                "share": pytest.approx(calls(group) / calls(records)),
                "sends": calls(each for each in group if each.method == "send"),
                "receives": calls(each for each in group if each.method in ("recv", "take")),
                "publishes": calls(each for each in group if each.method == "publish"),
                "met": calls(each for each in group if each.outcome in ("met", "prompt")),
                "timed_out": calls(each for each in group if each.outcome == "timed-out"),
                "forwarded": calls(each for each in group if each.route != "here"),
            }
        )
    wanted.sort(key=lambda row: (-row["calls"], row["token"]))
    assert rows(topics(table(spark, records))) == wanted
    assert rows(topics(table(spark, records), most=3)) == wanted[:3]


def test_forwarding_is_what_was_not_at_home(spark: SparkSession, records: list[Record]) -> None:
    found = {(row["node"], row["worker"]): row for row in rows(forwarding(table(spark, records), hop_cost=2.5))}
    wanted = grouped(records, lambda record: (record.node, record.worker))
    assert found.keys() == wanted.keys()
    for place, group in wanted.items():
        routes = {route: calls(each for each in group if each.route == route) for route in ("here", "sibling", "node")}
        away = routes["sibling"] + routes["node"]
        row = found[place]
        assert (row["here"], row["to_sibling"], row["to_node"]) == tuple(routes.values())
        assert row["forwarded"] == pytest.approx(away / calls(group))
        assert row["saved"] == pytest.approx(1 - calls(group) / (calls(group) + 2.5 * away))


def cause_of(record: Record, sides: dict[int, set[bool]]) -> str | None:
    match record.outcome:
        case "met" | "prompt":
            return None
        case "timed-out" if record.wait_us < 1000:
            return "probe"
        case "timed-out":
            return "nobody-then" if len(sides[record.token]) == 2 else "nobody-ever"
        case "gone":
            return "client-gone"
        case "cancelled" | "busy" | "draining":
            return record.outcome
    return "error"


def test_timeouts_have_causes(spark: SparkSession, records: list[Record]) -> None:
    by = ("node", "minute", "topic")
    sides: dict[int, set[bool]] = defaultdict(set)
    for record in records:
        sides[record.token].add(record.method in ("send", "publish"))
    parts: dict[str, Callable[[Record], Any]] = {
        "method": lambda record: record.method,
        "node": lambda record: record.node,
        "time": minute,
        "token": lambda record: record.token,
    }
    missed = [record for record in records if cause_of(record, sides)]
    wanted = grouped(missed, lambda record: (cause_of(record, sides), *(parts[name](record) for name in keys(by))))
    found = rows(timeouts(table(spark, records), by=by))
    for row in found:
        group = wanted.pop((row["cause"], *(us_of(row[key]) if key == "time" else row[key] for key in keys(by))))
        assert row["calls"] == calls(group)
        assert row["share"] == pytest.approx(calls(group) / calls(missed))
        assert row["of_all"] == pytest.approx(calls(group) / calls(records))
        assert row["topics"] == len({record.token for record in group})
    assert not wanted


def test_every_receiver_is_found_that_waited_while_a_sender_did(spark: SparkSession, records: list[Record]) -> None:
    overlap_us = 50_000
    missed = [record for record in records if record.outcome in ("timed-out", "cancelled", "gone", "draining")]
    sends = grouped((record for record in missed if record.method == "send"), lambda record: record.token)
    wanted: Counter[tuple[int, int, int, str]] = Counter()
    for record in missed:
        if record.method in ("recv", "take") and any(
            together(record, send) >= overlap_us for send in sends.get(record.token, ())
        ):
            wanted[record.token, record.time, record.wait_us, record.node] += 1
    found = rows(unmatched(table(spark, records), overlap_us=overlap_us))
    assert (
        Counter((row["token"], us_of(row["recv_time"]), row["recv_wait_us"], row["recv_node"]) for row in found)
        == wanted
    )
    for row in found:
        (overlap,) = {
            together(row_call(row, "recv"), send)
            for send in sends[row["token"]]
            if (send.time, send.wait_us, send.node, send.worker, send.ring, send.outcome)
            == tuple(row_call(row, "send")[each] for each in (0, 9, 1, 2, 12, 6))
        }
        assert row["overlap_us"] == overlap >= overlap_us


def row_call(row: dict[str, Any], side: str) -> Record:
    told = {name: row[f"{side}_{name}"] for name in ("node", "worker", "ring", "outcome", "wait_us")}
    unsaid = {"connection": 0, "door": "", "method": "", "route": "", "size": 0, "sample": 0, "source": ""}
    return Record(time=us_of(row[f"{side}_time"]), token=row["token"], **told, **unsaid)


def together(a: Record, b: Record) -> int:
    return min(a.time, b.time) - max(a.time - a.wait_us, b.time - b.wait_us)


def test_capacity_is_by_what_lies_within_the_calls(spark: SparkSession, records: list[Record]) -> None:
    seconds = 7
    found = rows(capacity(table(spark, records), per_core=250.0, seconds=seconds))
    steps = grouped(records, lambda record: minute(record, seconds) // 1_000_000)
    assert [us_of(row["time"]) // 1_000_000 for row in found] == sorted(steps)
    begin, end = (pick((record.time // 1_000_000 for record in records), default=0) for pick in (min, max))
    for row in found:
        start = us_of(row["time"]) // 1_000_000
        group = steps[start]
        length = min(start + seconds - 1, end) - max(start, begin) + 1
        peak = max(calls(each) for each in grouped(group, lambda record: record.time // 1_000_000).values())
        assert row["seconds"] == length
        assert row["calls"] == calls(group)
        assert row["rate"] == pytest.approx(calls(group) / length)
        assert row["cores"] == pytest.approx(calls(group) / length / 250)
        assert (row["peak"], row["peak_cores"]) == (peak, pytest.approx(peak / 250))


def test_balance_by_a_ring_is_what_the_ring_itself_says(spark: SparkSession, records: list[Record]) -> None:
    ring = a_ring()
    owned: Counter[Any] = Counter()
    arrived: Counter[Any] = Counter()
    for record in records:
        place = ring.ring.owner(record.token)
        held = sorted(token for member in ring for token in member.tokens)
        token = max((each for each in held if each < record.token), default=held[-1])
        for key in (("node", place.node, None, None), ("worker", *place, None), ("token", place.node, None, token)):
            owned[key] += record.sample
        for key in (("node", record.node, None, None), ("worker", record.node, record.worker, None)):
            arrived[key] += record.sample
    found = {
        (row["level"], row["node"], row["worker"], row["token"]): row
        for row in rows(balance(table(spark, records), Owners({}, ring)))
    }
    # Node "a" has a worker for each of its two tokens; "b" has three tokens, of which its first worker has two.
    assert Counter(level for level, *_ in found) == {"node": 3, "worker": 6, "token": 7}
    levels = {level: sum(1 for key in found if key[0] == level) for level in ("node", "worker", "token")}
    for key, row in found.items():
        assert row["owned"] == owned[key]
        assert row["fair"] == pytest.approx(1 / levels[key[0]])
        if records:
            assert row["share"] == pytest.approx(owned[key] / calls(records))
            assert row["load"] == pytest.approx(row["share"] / row["fair"])
        assert row["arrived"] == (None if key[0] == "token" else arrived[key])
        if key[0] == "node":
            assert row["arc"] == pytest.approx(ring.shares()[key[1]])
    for level in levels:
        assert sum(row["arc"] for key, row in found.items() if key[0] == level) == pytest.approx(1)


def test_balance_goes_by_the_ring_of_each_call_and_by_records_where_that_is_not_known(
    spark: SparkSession, records: list[Record]
) -> None:
    rings = {"r1": a_ring(), "r3": a_ring()}  # in which no call was made
    homes = {(each.ring, each.token): (each.node, each.worker) for each in records if each.route == "here"}
    owned: Counter[Any] = Counter()
    for record in records:
        if record.ring in rings:
            owner: tuple[str | None, int | None] = rings[record.ring].ring.owner(record.token)
        else:
            aside = (record.node if record.route == "sibling" else None, None)
            owner = homes.get((record.ring, record.token), aside)
        owned["node", owner[0], None] += record.sample
        owned["worker", *owner] += record.sample
    found = {
        (row["level"], row["node"], row["worker"]): row
        for row in rows(balance(table(spark, records), Owners(rings)))
        if row["level"] != "token"
    }
    assert {key: row["owned"] for key, row in found.items() if row["owned"]} == dict(owned)
    if any(record.ring == "r1" for record in records):
        for node, share in rings["r1"].shares().items():
            assert found["node", node, None]["arc"] == pytest.approx(share)


def test_no_calls_make_no_figures(spark: SparkSession) -> None:
    frame = table(spark, [])
    for job in (latency, topics, forwarding, timeouts, unmatched, capacity):
        assert rows(job(frame)) == [], job
    levels = Counter(row["level"] for row in rows(balance(frame, Owners({}, a_ring()))) if row["owned"] == 0)
    assert levels == {"node": 3, "worker": 6, "token": 7}
