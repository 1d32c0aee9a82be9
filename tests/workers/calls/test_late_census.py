"""A :topic is answered once, whatever becomes of its owner after that."""

from __future__ import annotations

import os
import signal

import pytest

from skywalker.limits import MAX_UNREADABLE
from tests.helpers import eventually
from tests.workers.processes import node
from tests.workers.wire_client import clients_of, refusal


@pytest.mark.parametrize("end", [None, signal.SIGKILL], ids=["goes-on", "dies"])
def test_a_census_that_was_refused_is_not_answered_again_when_its_owner_wakes_or_dies(
    end: signal.Signals | None,
) -> None:
    with node(workers=2) as running, clients_of(("127.0.0.1", running.port)) as connect:
        client, owner = connect(worker=0), running.first_workers[1]
        with running.connect() as any_client:
            topic = any_client.topic_owned_by(1)
        os.kill(owner, signal.SIGSTOP)
        for id in range(5):
            client.answer(":topic", id, topic)
        refused = [refusal(reply) for reply in client.replies(5)]
        assert {(each.id, each.code) for each in refused} == {(id, "busy") for id in range(5)}
        if end is not None:
            os.kill(owner, end)
        else:
            os.kill(owner, signal.SIGCONT)
        # What is said of the first five would come before an answer of the owner or its successor.
        answers: list[list[object]] = []

        def counted() -> bool:
            client.answer(":topic", "again", topic)
            answers.append(client.reply())
            return isinstance(answers[-1][2], dict)

        eventually(counted)
        assert client.ask(":ping", "last") is True
        assert {id for _, id, _ in answers} == {"again"}
        assert "Traceback" not in running.log()


def test_a_census_that_comes_after_a_connections_last_words_is_kept_from_it() -> None:
    with node(workers=2) as running, clients_of(("127.0.0.1", running.port)) as connect:
        client, other, owner = connect(worker=0), connect(worker=0), running.first_workers[1]
        with running.connect() as any_client:
            topic = any_client.topic_owned_by(1)
        os.kill(owner, signal.SIGSTOP)
        try:
            client.answer(":topic", 1, topic)
            client.write(b"\x00\x01\xc1" * MAX_UNREADABLE)
            assert [refusal(reply).code for reply in client.replies(MAX_UNREADABLE)] == ["bad-frame"] * MAX_UNREADABLE
            client.wait_for_end()
        finally:
            os.kill(owner, signal.SIGCONT)
        assert isinstance(other.ask(":topic", 2, topic), dict)
        # The node still takes in what we say, so that its last words are not destroyed on their way.
        for _ in range(2):
            assert other.ask(":ping", 3) is True
            client.write(b"x")
