"""How much one may do: calls by the second and in flight, of a connection and of all that one principal has; and
how many may come in of whom nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.access import token
from skywalker.limits import MAX_UNREADABLE
from tests.helpers import CLOCK
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import TIMED_OUT, Clients, Refusal, WireClient, call, clients_of, refusal

RATE = 100
IN_FLIGHT = 10
CONNECTIONS = 4
STRANGERS = 20
GREETING_S = 0.5

LIMITS = {
    "quick": f"rate = {RATE}",
    "patient": f"in_flight = {IN_FLIGHT}",
    "crowd": f"connections = {CONNECTIONS}",
    "good": "",
}
TOKENS = {name: token.new() for name in LIMITS}
MAY = 'send = ["*"]\nrecv = ["*"]\npublish = ["*"]\nsubscribe = ["*"]\n'


PEOPLE = "\n".join(
    f'[access.{name}]\ntoken = "{token.hash_of(TOKENS[name])}"\n{limit}\n{MAY}' for name, limit in LIMITS.items()
)


@pytest.fixture
def node() -> Iterator[Node]:
    """A node that knows some people, most of whom it allows little, and nobody else."""
    with simulated(tables=PEOPLE, max_strangers=STRANGERS, greeting_s=GREETING_S) as node:
        yield node


@pytest.fixture
def connect(node: Node) -> Iterator[Clients]:
    with clients_of(node.address) as clients:
        yield clients


def come_as(connect: Clients, name: str) -> WireClient:
    """Return a connection of somebody whom the node knows."""
    client = connect()
    client.ask(":hello", "hello", {"token": TOKENS[name]})
    return client


def refused(replies: list[list[object]]) -> list[Refusal]:
    """Return those replies that are errors."""
    return [refusal(reply) for reply in replies if reply[2] is not True]


def test_calls_beyond_the_rate_of_a_connection_are_refused_and_say_when_to_come_again() -> None:
    with simulated(max_rate=RATE) as node, clients_of(node.address) as connect:
        greedy, other = connect(), connect()
        greedy.write(call(":ping", 1) * 5 * RATE)
        errors = refused(greedy.replies(5 * RATE))
        assert RATE < len(errors) <= 4 * RATE  # it has to rest between some of them
        assert {(error.code, error.details["limit"]) for error in errors} == {("busy", "max_rate")}
        assert all(0 < error.details["retry_ms"] <= 1000 / RATE for error in errors)
        assert other.ask(":ping", 1) is True
        CLOCK.sleep(errors[-1].details["retry_ms"] / 1000)
        assert greedy.ask(":ping", 2) is True


@pytest.mark.parametrize("elements", [(":ping", 1, True), (":ack", 1, 2)], ids=lambda elements: elements[0])
def test_what_is_no_answer_to_the_node_counts_as_a_call_though_it_begins_as_one(elements: tuple[Any, ...]) -> None:
    with simulated(max_rate=RATE) as node, clients_of(node.address) as connect:
        greedy = connect()
        greedy.write(call(*elements) * 5 * RATE)
        codes = [refusal(reply).code for reply in greedy.replies(5 * RATE)]
        assert {*codes} == {"bad-arity", "busy"}
        assert codes.count("busy") > RATE


def test_a_call_is_cancelled_at_any_rate_and_only_once() -> None:
    with simulated(workers=2, max_rate=RATE) as node, clients_of(node.address) as connect:
        greedy, hung = connect(worker=0), connect(worker=1)
        topic = node.topic_of(1, "held up")
        with node.hung(hung):
            greedy.call(":send!", 1, 60_000, topic, "value")
            greedy.write(call(":cancel", 2, 1) * 3 * RATE)
            answers = [result for _, _, result in greedy.replies(3 * RATE - 1)]  # that of the first is still to come
            assert answers.count(False) <= 2 * RATE, "more than that, and it would have to rest"
            assert {refusal([":cancel", 2, result]).code for result in answers if result is not False} == {"busy"}
        assert refusal(greedy.reply()).code == "cancelled"
        assert greedy.reply() == [":cancel", 2, True]


def test_over_some_time_no_more_than_the_rate_is_let_through() -> None:
    with simulated(max_rate=RATE) as node, clients_of(node.address) as connect:
        client = connect()
        began = CLOCK.monotonic()
        served = 0
        while (took := CLOCK.monotonic() - began) < 1.5:
            client.write(call(":ping", 1) * 20)
            served += 20 - len(refused(client.replies(20)))
        # A second's worth at once, and then so many a second.
        assert RATE * took <= served <= RATE * (took + 1) + 20


def test_one_that_publishes_too_fast_is_read_more_slowly_and_loses_nothing() -> None:
    with (
        simulated(max_rate=RATE) as node,
        PubSubClient.open(node.pubsub) as subscriber,
        PubSubClient.open(node.pubsub) as publisher,
    ):
        subscriber.subscribe(b"topic")
        count = 2 * RATE
        began = CLOCK.monotonic()
        publisher.write(b"".join(publish(b"topic", b"%d" % number) for number in range(count)))
        publisher.acks(count)
        assert CLOCK.monotonic() - began > 0.9
        assert [int(message.payload) for message in subscriber.messages(count)] == [*range(count)]


def test_a_principal_has_one_rate_for_all_its_connections(connect: Clients) -> None:
    clients = [come_as(connect, "quick") for _ in range(5)]
    for client in clients:
        client.write(call(":ping", 1) * RATE)
    errors = [error for client in clients for error in refused(client.replies(RATE))]
    assert len(errors) > 3 * RATE
    assert {error.code for error in errors} == {"busy"}
    assert come_as(connect, "good").ask(":ping", 1) is True


def test_a_principal_has_so_many_calls_in_flight_on_all_its_connections(connect: Clients) -> None:
    first, second = come_as(connect, "patient"), come_as(connect, "patient")
    for id in range(IN_FLIGHT - 1):
        first.call(":recv!", id, 60_000, "patience")
    second.call(":recv!", "one", 60_000, "patience")
    first.wait_until("patience", receivers=IN_FLIGHT)
    second.call(":recv!", "too many", 60_000, "patience")
    error = second.refusal()
    assert (error.id, error.code, error.details) == ("too many", "busy", {"limit": "access.in_flight", "value": 10})
    other = come_as(connect, "good")
    assert other.ask(":recv!", 1, 1, "elsewhere") == TIMED_OUT
    assert second.ask(":recv!", 2, 0, "patience") == TIMED_OUT
    # What has ended, in any way, is in flight no more.
    second.call(":cancel", "cancel", "one")
    assert refusal(second.reply()).code == "cancelled"
    assert second.reply()[2] is True
    assert second.ask(":recv!", 3, 1, "patience") == TIMED_OUT
    first.reset()
    other.wait_until("patience", receivers=0)
    for id in range(IN_FLIGHT):
        second.call(":recv!", id, 1, "patience")
    assert [result for _, _, result in second.replies(IN_FLIGHT)] == [TIMED_OUT] * IN_FLIGHT


def test_a_principal_has_so_many_connections_and_one_that_is_closed_makes_room(connect: Clients) -> None:
    clients = [come_as(connect, "crowd") for _ in range(CONNECTIONS)]
    late = connect()
    late.call(":hello", 1, {"token": TOKENS["crowd"]})
    error = late.refusal()
    assert (error.code, error.details) == ("busy", {"limit": "access.connections", "value": CONNECTIONS})
    assert all(client.ask(":ping", 1) is True for client in clients)
    clients[0].close()
    clients[1].reset()
    for _ in range(2):
        # Of one that is closed the node hears before what another says after it.
        assert come_as(connect, "crowd").ask(":ping", 1) is True


def test_those_who_say_not_who_they_are_get_no_room_of_those_who_do(connect: Clients) -> None:
    strangers = [connect() for _ in range(3 * STRANGERS)]
    # The oldest had to go, and were told why; whoever is quick comes in nevertheless.
    assert come_as(connect, "good").ask(":ping", 1) is True
    codes = [stranger.refusal().code for stranger in strangers]
    assert codes[0] == "busy"
    assert codes[-1] == "unauthorized"
    for stranger in strangers:
        stranger.wait_for_end()


def test_one_who_says_nothing_has_a_while_and_one_who_says_anything_else_some_words(connect: Clients) -> None:
    silent, busy = connect(), connect()
    busy.write(call(":ping", 1) * MAX_UNREADABLE)
    assert {refusal(reply).code for reply in busy.replies(MAX_UNREADABLE)} == {"unauthorized"}
    busy.wait_for_end()
    assert silent.refusal().code == "unauthorized"
    silent.wait_for_end()


def test_what_a_stranger_says_is_kept_only_as_far_as_a_greeting_goes(connect: Clients) -> None:
    client = connect()
    client.write(call(":ping", b"x" * 60_000)[:30_000])
    assert client.refusal(GREETING_S / 2).code == "unauthorized"
    client.wait_for_end()
