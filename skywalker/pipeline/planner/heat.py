"""What the hottest topics ask of the worker that owns them: a topic has one owner, however many nodes there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skywalker.pipeline.planner.load import Load
from skywalker.pipeline.planner.skew import Zipf, steepest

TOPS: Final = (1, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Heat:
    """The hottest topics; rates are in calls/s, and None where the rate of the cluster or of a worker is not given."""

    shares: dict[int, float]  # of all calls, by how many of the hottest topics have them together
    hottest_rate: float | None
    bears: float | None  # calls/s in all at which a worker just bears the hottest topic
    too_hot: int | None  # topics of which one asks for more than a worker can do; of no more than HOTTEST
    fewest: int | None  # topics of which, with this skew, none is too hot; None also if any number has one
    steepest: float | None  # exponent with which, of so many topics, none is too hot; None also if there is none


def heat(load: Load, skew: Zipf | None, rate: float | None, worker_rate: float | None) -> Heat:
    """Return what the hottest topics of a load ask for.

    `skew` is the law that made it, None if the calls of the topics were given. `rate` are the calls/s of the whole
    cluster, `worker_rate` those that one worker can do.
    """
    parts = load.hottest / load.calls.sum()
    topics = int(load.topics.sum())
    both = None if rate is None or worker_rate is None else worker_rate / rate
    return Heat(
        shares={top: float(parts[:top].sum()) for top in TOPS if top <= topics},
        hottest_rate=None if rate is None else rate * float(parts[0]),
        bears=None if worker_rate is None else worker_rate / float(parts[0]),
        too_hot=None if both is None else int((parts > both).sum()),
        fewest=None if both is None or skew is None else skew.fewest(both),
        steepest=None if both is None or skew is None else steepest(topics, both),
    )
