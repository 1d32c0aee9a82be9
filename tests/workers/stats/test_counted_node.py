"""What the workers of a node count together is what its clients did, wherever the topics are owned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.admin.asking import Asker, node
from tests.helpers import eventually
from tests.workers.wire_client import TIMED_OUT, Address, call, clients_of

TOPICS = 60


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[Address, Asker]]:
    """The address of a node, and who tells its metrics."""
    with node(workers=3) as (found, asker):
        yield (found.host, found.port), asker


def counted_by(asker: Asker) -> dict[str, Counter[str]]:
    """Return what the node says that it counted of calls, by labels."""
    names = {
        "skywalker_calls_total": ("method", "outcome"),
        "skywalker_calls_routed_total": ("route",),
        "skywalker_wait_seconds_count": ("method",),
        "skywalker_hand_off_seconds_count": (),
    }
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for (name, values), value in asker.metrics().items():
        if name in names:
            found[name][" ".join(dict(values)[label] for label in names[name])] += int(value)
    return found


def meet(address: tuple[str, int]) -> None:
    """Have each of many values received twice, over connections to any workers, and some calls in vain."""
    with clients_of(address) as connect:
        sender, one, other = connect(), connect(), connect()
        for client in (one, other):
            client.write(b"".join(call(":recv!", n, 60_000, ["topic", n]) for n in range(TOPICS)))
        for n in range(TOPICS):
            sender.wait_until(["topic", n], receivers=2)
            assert sender.ask(":send!", n, 60_000, ["topic", n], "value") is True
        assert len(one.replies(TOPICS)) == len(other.replies(TOPICS)) == TOPICS
        other.write(b"".join(call(":take!", n, 20, ["nobody", n], "group") for n in range(TOPICS)))
        assert [result for _, _, result in other.replies(TOPICS)] == [TIMED_OUT] * TOPICS


def test_all_workers_together_count_each_call_once(counted: tuple[Address, Asker]) -> None:
    address, asker = counted
    before = counted_by(asker)

    def now() -> list[Counter[str]]:
        # It looks at what the workers count once a second.
        grown = [counter - old for counter, old in zip(counted_by(asker).values(), before.values(), strict=True)]
        return grown if sum(grown[0].values()) >= 4 * TOPICS else []

    meet(address)
    calls, routed, wait, hand_off = eventually(now)
    by_method: Counter[str] = Counter()
    for what, count in calls.items():
        by_method[what.split()[0]] += count
    assert by_method == {"send": TOPICS, "recv": 2 * TOPICS, "take": TOPICS}
    assert {what.split()[1] for what in calls} <= {"met", "prompt", "timed-out"}
    assert calls["take timed-out"] == TOPICS
    assert sum(routed.values()) == sum(calls.values())
    assert routed.keys() == {"here", "sibling"}
    assert wait == Counter({what.split()[0]: count for what, count in calls.items() if what.endswith(" met")})
    assert hand_off == Counter({"": sum(count for what, count in calls.items() if what.endswith(" prompt"))})


def test_nobody_waits_any_more_and_every_connection_is_closed_for_a_reason(counted: tuple[Address, Asker]) -> None:
    address, asker = counted
    before = asker.metric("skywalker_connections_opened_total")

    def settled() -> bool:
        sums: Counter[str] = Counter()
        for (name, _), value in asker.metrics().items():
            sums[name] += int(value)
        opened, closed = sums["skywalker_connections_opened_total"], sums["skywalker_connections_closed_total"]
        return opened == closed >= before + 3 and not sums["skywalker_waiting"] and not sums["skywalker_connections"]

    meet(address)
    eventually(settled)
