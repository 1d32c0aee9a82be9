"""A worker that is asked what it holds, while it cannot answer: it goes on, and answers when it can again."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterator

from tests.admin.asking import agent_of, node, stopped
from tests.helpers import eventually, time_factor

QUESTIONS = ("/api/topics", "/api/connections", "/api/topics?order=rate", "/api/topics?limit=500")


@contextlib.contextmanager
def out_of_descriptors(pid: int) -> Iterator[None]:
    """Have a process open no file for a while."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_a_worker_that_can_open_no_file_says_so_once_and_goes_on() -> None:
    with node() as (found, asker), found.connect() as client:
        client.send("nobody", 1, timeout=0, default=None)
        [worker] = found.worker_pids()
        with out_of_descriptors(worker):
            began = time.monotonic()
            for path in QUESTIONS:
                answer = asker.json(path)
                assert answer["silent"] == [0]
            assert time.monotonic() - began < 0.9 * time_factor(), "it says at once that it has no answer"
            client.send("nobody", 1, timeout=0, default=None)
            assert found.worker_pids() == [worker]
        for path in QUESTIONS:
            assert eventually(lambda: asker.json(path)["silent"] == [])  # noqa: B023
        assert found.worker_pids() == [worker]
        warnings = [line for line in found.log.splitlines() if "event=no-inspection" in line]
        assert len(warnings) == 1
        assert "Too many open files" in warnings[0]


def test_an_agent_that_dies_in_the_middle_of_a_question_is_no_matter_to_the_worker() -> None:
    with node(watchdog_s=60) as (found, asker), found.connect() as client:
        [worker] = found.worker_pids()
        with stopped(worker):
            assert asker.json("/api/topics")["silent"] == [0]  # it finds the question when it goes on
            os.kill(agent_of(found), signal.SIGKILL)
        client.send("nobody", 1, timeout=0, default=None)
        eventually(lambda: asker.json("/api/topics")["silent"] == [], within=10)
        assert found.worker_pids() == [worker]
        assert "no-inspection" not in found.log
        assert "event=bug" not in found.log
