"""What only a kernel does to a cluster, under load: what is promised holds all the same.

SKYWALKER_CHAOS_SECONDS says for how long each of it happens, SKYWALKER_CHAOS_SEED with which mixture.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.chaos.run import NETWORKED, NODES, run
from tests.cluster import network

SECONDS = float(os.environ.get("SKYWALKER_CHAOS_SECONDS", "3"))


@pytest.mark.timeout(SECONDS * 3 + 120)
@pytest.mark.parametrize("kind", NODES)
def test_what_is_promised_holds_in_spite_of(kind: str) -> None:
    if kind in NETWORKED:
        network.require()
    seed = int(os.environ.get("SKYWALKER_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"SKYWALKER_CHAOS_SEED={seed} SKYWALKER_CHAOS_SECONDS={SECONDS:g}")
    found = run(kind, SECONDS, seed)
    print(f"{found.calls} calls, {found.met} met, {found.published} published, {found.troubles} times")
    if found.broken:
        pytest.fail(f"{len(found.broken)} did not hold\n" + "\n".join(found.broken[:10]), pytrace=False)
    assert "Traceback" not in found.logs
    # All of this would hold of a cluster that does nothing, and to which nothing happens.
    assert found.met > 20
    assert found.published > 10
    assert found.troubles
