"""A worker that is asked what it holds, while it cannot answer: it goes on, and answers when it can again."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import pytest

from skywalker.embedding import Node
from tests.admin import asking
from tests.admin.asking import Asker
from tests.helpers import eventually, time_factor

QUESTIONS = ("/api/topics", "/api/connections", "/api/topics?order=rate", "/api/topics?limit=500")


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Node, Asker]]:
    with asking.node(watchdog_s=60) as (found, asker):
        pids = found.worker_pids()
        yield found, asker
        assert found.worker_pids() == pids
        assert "event=bug" not in found.log


def test_a_worker_that_can_open_no_file_says_so_once_and_goes_on(asked: tuple[Node, Asker]) -> None:
    found, asker = asked
    [worker] = found.worker_pids()
    soft, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    with found.connect() as client:
        client.send("nobody", 1, timeout=0, default=None)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (3, hard))
        began = time.monotonic()
        for path in QUESTIONS:
            assert asker.json(path)["silent"] == [0]
        assert time.monotonic() - began < 0.9 * time_factor(), "it says at once that it has no answer"
        client.send("nobody", 1, timeout=0, default=None)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (soft, hard))
    for path in QUESTIONS:
        assert eventually(lambda: asker.json(path)["silent"] == [])  # noqa: B023
    [warning] = [line for line in found.log.splitlines() if "event=no-inspection" in line]
    assert "Too many open files" in warning
