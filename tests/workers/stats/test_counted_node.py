"""What the workers of a node count together is what its clients did, wherever the topics are owned."""

from __future__ import annotations

from collections import Counter

from tests.helpers import eventually
from tests.workers.staged import simulated
from tests.workers.wire_client import TIMED_OUT, call, clients_of
from workers.stats.metrics import CALLS, CLOSED, CONNECTIONS, HAND_OFF, OPENED, ROUTED, WAIT, WAITING

TOPICS = 60


def test_all_workers_together_count_each_call_once_and_nobody_waits_in_the_end() -> None:
    with simulated(3) as node, clients_of(node.address) as connect:
        clients = sender, one, other = [connect(worker=worker) for worker in range(3)]
        for client in (one, other):
            client.write(b"".join(call(":recv!", n, 60_000, ["topic", n]) for n in range(TOPICS)))
        for n in range(TOPICS):
            sender.wait_until(["topic", n], receivers=2)
            assert sender.ask(":send!", n, 60_000, ["topic", n], "value") is True
        assert len(one.replies(TOPICS)) == len(other.replies(TOPICS)) == TOPICS
        other.write(b"".join(call(":take!", n, 20, ["nobody", n], "group") for n in range(TOPICS)))
        assert [result for _, _, result in other.replies(TOPICS)] == [TIMED_OUT] * TOPICS

        calls, routed, wait, hand_off = (+node.counted(each) for each in (CALLS, ROUTED, WAIT, HAND_OFF))
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

        opened = sum(node.counted(OPENED).values())
        for client in clients:
            client.close()
        eventually(lambda: sum(node.counted(CLOSED).values()) == opened >= 3)
        assert not +node.counted(WAITING)
        assert not +node.counted(CONNECTIONS)
