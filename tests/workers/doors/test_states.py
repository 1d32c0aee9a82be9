"""A connection is in one state of each of its tables, whatever happens, and what can be seen of it agrees with them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skywalker.limits import Limits
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_client import ACK, publish, subscribe
from tests.workers.wire_client import packed, raw_call
from workers.calls.worker_states import Event
from workers.doors.connection import Connection
from workers.doors.junction.dialogue import Dialogue
from workers.doors.pubsub import PubSub
from workers.doors.states import CHOKED, CLOSED, HEARD, LEAVING, LEAVING_CHOKED, LINGERING, LINK, OPEN, RESTING, UNHEARD
from workers.engine.life import Unlisted
from workers.engine.loop import READ
from workers.stats.close_reasons import Close

WHY = (Close.DRAINING, "the test wants it so")

MUCH = b"v" * 300_000
"""Bytes that no small buffer holds."""


class Client:
    """A worker, and a connection to it with small buffers, of which the test has the other end."""

    def __init__(self, dialect: type[Connection], worker: OneWorker | None = None) -> None:
        self.worker = OneWorker() if worker is None else worker
        self.ours, self.connection = self.worker.connected(dialect, 4096)
        self.ours.setblocking(False)

    def say(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it is closed, or full
            self.ours.send(data)

    def read(self) -> None:
        with contextlib.suppress(OSError):
            while self.ours.recv(1 << 20):
                pass

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.ours.shutdown(socket.SHUT_WR)

    def check(self) -> None:
        connection, core = self.connection, self.worker.core
        assert connection.gone == (connection.life >= LEAVING)
        assert (connection in core.connections.choked) == (connection.life in (CHOKED, LEAVING_CHOKED))
        assert (connection in [*core.connections]) == (connection.life < CLOSED)
        assert connection.life < CLOSED or connection.hearing == UNHEARD

    def close(self) -> None:
        self.ours.close()
        self.worker.close()
        assert self.worker.holds()["calls"] == 0
        assert not self.worker.core.connections.choked


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client(Dialogue)
    yield client
    client.close()


CALL = raw_call(*map(packed, (":recv!", 1, 60_000, "topic")))

DOES = {
    "calls": lambda client: client.say(CALL),
    "says nonsense": lambda client: client.say(b"\x00\x01\xff" * 100),
    "publishes": lambda client: client.say(b"\x01\x00\x01\x00x" * 200),
    "subscribes": lambda client: client.say(b"\x02\x00"),
    "reads": Client.read,
    "ends its half": Client.end,
    "is told much": lambda client: client.connection.gone or client.connection.push(MUCH),
    "is left": lambda client: client.connection.goodbye(),
    "rests": lambda client: (
        client.connection.gone or client.connection.hearing != HEARD or client.connection.rest([], 0.5)
    ),
    "is closed": lambda client: client.connection.close(*WHY),
    "waits": lambda client: client.worker.turn(later=3.0),
}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([Dialogue, PubSub]), st.lists(st.sampled_from([*DOES]), max_size=12))
def test_whatever_happens_what_is_seen_of_it_agrees_with_its_state(dialect: type[Connection], does: list[str]) -> None:
    client = Client(dialect)
    try:
        for each in does:
            DOES[each](client)
            client.check()
            client.worker.turn()
            client.check()
    finally:
        client.close()
    assert client.connection.life == CLOSED


def test_one_that_is_told_more_than_it_reads_leaves_when_it_has_read_that(client: Client) -> None:
    connection, lives = client.connection, []
    connection.push(MUCH)
    for step in (client.worker.turn, connection.goodbye, client.worker.turn):
        lives.append(connection.life)
        step()
    lives.append(connection.life)
    assert lives == [OPEN, CHOKED, LEAVING_CHOKED, LEAVING_CHOKED]
    for _ in range(10_000):
        client.read()
        client.worker.turn()
        if connection.life == LINGERING:
            break
    client.end()
    client.worker.turn()
    assert connection.life == CLOSED


def test_one_that_leaves_cannot_be_told_to_again_and_nothing_changes(client: Client) -> None:
    client.say(CALL)
    client.worker.turn()
    client.connection.goodbye()
    with pytest.raises(Unlisted, match="a connection that is leaving cannot be finished"):
        client.connection.finish(b"again", *WHY)
    assert client.connection.life == LEAVING
    client.worker.turn()
    assert client.connection.life == LINGERING
    client.check()


def test_one_that_is_choked_cannot_become_a_link(client: Client) -> None:
    client.connection.push(MUCH)
    client.worker.turn()
    with pytest.raises(Unlisted, match="choked cannot be given away"):
        client.connection.detach()
    client.check()
    assert client.connection.life == CHOKED


def test_one_that_became_a_link_is_heard_no_more_and_cannot_be_closed(client: Client) -> None:
    transport, unwritten = client.connection.detach()
    client.connection.close(*WHY)
    assert (client.connection.life, client.connection.hearing, unwritten) == (LINK, UNHEARD, b"")
    assert transport.send(b"it is open") == 10
    transport.close()


def test_a_rest_that_is_over_when_it_is_closed_has_nothing_go_on(client: Client) -> None:
    client.connection.rest([])
    client.connection.close(*WHY)
    client.worker.turn()
    assert client.connection.hearing == UNHEARD


def frames(*calls: tuple[Any, ...]) -> bytes:
    return b"".join(raw_call(*map(packed, call)) for call in calls)


LISTENING: Final = frames((":hello", 9, {"ack": True}), *((":recv!", 1, 60_000, topic) for topic in "tu"))
"""What has its client given values for two calls of one id, which are to be acknowledged."""


def test_one_that_leaves_in_the_turn_in_which_it_gets_two_values_of_one_id_has_its_last_words_once(
    client: Client,
) -> None:
    sends = frames(*((":send!", 2, 60_000, topic, "value") for topic in "tu"))
    client.say(LISTENING + sends + frames((":proof", 4, "no")))
    client.worker.turn()
    client.check()
    assert client.connection.life == LINGERING


def test_one_that_reads_two_values_of_one_id_after_it_has_left_has_all_of_its_last_words(client: Client) -> None:
    client.say(LISTENING)
    client.worker.turn()
    sender = client.worker.connect()
    for topic in "tu":
        sender.call(":send!", 1, 60_000, topic, "v" * 25_000)
    client.worker.turn()
    assert client.connection.life == CHOKED
    client.connection.goodbye()
    heard = 0
    for _ in range(1000):
        with contextlib.suppress(BlockingIOError):
            data = client.ours.recv(1 << 20)
            if not data:
                break
            heard += len(data)
        client.worker.turn()
    sender.close()
    assert heard > 50_000
    assert client.connection.life == LINGERING


def test_one_that_rests_is_read_when_it_leaves_so_that_its_close_destroys_nothing(client: Client) -> None:
    client.connection.rest([], 60.0)
    client.connection.goodbye()
    client.worker.turn()
    client.say(CALL)
    client.worker.turn()
    assert client.connection.hearing == HEARD
    client.end()
    client.worker.turn()
    assert client.connection.life == CLOSED


def test_one_whose_rest_is_over_is_not_heard_before_its_worker_has_opened() -> None:
    client = Client(Dialogue, OneWorker(Limits(max_rate=1), opens=False))
    core = client.worker.core
    client.say(frames(*((":hello", number, {}) for number in range(40)), (":recv!", 1, 60_000, "topic")))
    client.worker.turn()
    client.worker.turn(later=1.0)
    assert client.connection.hearing == RESTING
    core.standing.happened(Event.OPENED)
    core.connections.hear_all()
    client.worker.turn()
    assert client.connection.hearing == HEARD
    client.close()


def test_a_send_that_is_cancelled_as_a_subscriber_is_about_to_have_it_is_told_that_it_has() -> None:
    publisher = Client(PubSub)
    sender = Client(Dialogue, publisher.worker)
    publisher.say(subscribe(b"topic"))
    publisher.worker.turn()
    publisher.read()
    # The value waits behind the ack of what the subscriber itself has published, which is said at the end of the turn,
    # and before the cancelled send is looked at.
    publisher.say(publish(b"topic", b"own"))
    sender.say(raw_call(*map(packed, (":send!", 1, 5000, "topic", "value"))))
    sender.say(raw_call(*map(packed, (":cancel", 2, 1))))
    publisher.connection.ready(READ)
    sender.connection.ready(READ)
    publisher.worker.turn()
    assert publisher.ours.recv(1000) == ACK + publish(b"topic", b"own") + publish(b"topic", b"value")
    answers = sender.ours.recv(1000)
    assert answers == raw_call(*map(packed, (":send!", 1, True))) + raw_call(*map(packed, (":cancel", 2, False)))
    sender.ours.close()
    publisher.close()
