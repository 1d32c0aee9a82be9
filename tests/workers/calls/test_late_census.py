"""A :topic is answered once, whatever becomes of its owner after that."""

from __future__ import annotations

import signal

import pytest

from tests.helpers import eventually
from tests.workers.staged import simulated
from tests.workers.wire_client import clients_of, refusal


@pytest.mark.parametrize("end", [None, signal.SIGKILL], ids=["goes-on", "dies"])
def test_a_census_that_was_refused_is_not_answered_again_when_its_owner_wakes_or_dies(
    end: signal.Signals | None,
) -> None:
    with simulated(2, harmed=True) as node, clients_of(node.address) as connect:
        client, owner = connect(worker=0), node.pid_behind(connect(worker=1))
        topic = node.topic_of(1, "topic")
        with node.hung_process(owner):
            for id in range(5):
                client.call(":topic", id, topic)
            refused = [refusal(reply) for reply in client.replies(5)]
            assert {(each.id, each.code) for each in refused} == {(id, "busy") for id in range(5)}
            if end is not None:
                node.kill(owner, end)
        # What is said of the first five would come before an answer of the owner or its successor.
        answers: list[list[object]] = []

        def counted() -> bool:
            client.call(":topic", "again", topic)
            answers.append(client.reply())
            return isinstance(answers[-1][2], dict)

        eventually(counted)
        assert client.ask(":ping", "last") is True
        assert {id for _, id, _ in answers} == {"again"}
        assert "Traceback" not in node.log
