"""Direct lines in the pure core: against a model of a node, with every order of events that a test can think of."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.clients.call import GRACE_S, Call
from skywalker.clients.calls import BARRIER_S, MUTE_TRIES, Calls
from skywalker.clients.routes import DIRECT_AFTER_CALLS, REDIAL_S, RETRY_S
from skywalker.members import Place
from skywalker.ring import token_of
from tests.clients.model_client import T0, ModelClient
from tests.clients.model_node import ModelNode
from tests.clients.scripted import error, framed
from tests.clients.test_calls import begin
from tests.clients.test_calls import settings as connect_settings

TOKENS = [token_of(bytes([number])) for number in range(32)]
TOPICS = [f"topic-{number}" for number in range(8)]


class Client(ModelClient):
    """A client at a model of a node."""

    def __init__(self, workers: int, **changes: Any) -> None:
        self.node = ModelNode(workers, TOKENS)
        super().__init__(Calls(connect_settings(**changes)), self.node)
        self.warm_up()

    def warm_up(self) -> None:
        """Connect, and make the calls that make direct lines worth it."""
        self.connect(worker=0)
        self.run(dials=False)
        self.make_direct_lines_worth_it()
        while self.calls.main.shell.up:
            self.node.read(self.calls.main.shell)
        self.calls.ended.clear()

    def connect(self, worker: int) -> None:
        """Make a main connection."""
        self.node.connect(self.calls.main, worker)
        self.calls.connected_to_node(self.now)
        self.settle()

    def dial(self, worker: int) -> bool:
        """Have the next direct connection, if one is wanted, meet a worker."""
        wanted = self.calls.dial(self.now)
        if wanted is None:
            return False
        self.node.connect(self.calls.opened(wanted, self.now), worker)
        self.settle()
        return True

    def run(self, dials: bool = True) -> None:
        """Go on until nothing happens any more, without answering what waits for a partner."""
        met = 0
        while True:
            self.settle()
            lines = self.lines()
            if up := [line for line in lines if line.shell.up]:
                self.node.read(up[0].shell)
            elif hops := self.node.busy_hops():
                self.node.forward(hops[0])
            elif down := [line for line in lines if line.shell.down]:
                self.calls.receive(down[0], self.node.reply(down[0].shell), self.now)
            elif dials and self.dial(met % self.node.workers):
                met += 1
            else:
                return


def at(worker: int) -> Place:
    """Return a worker of the model."""
    return Place("model", worker)


def is_in_order(node: ModelNode) -> bool:
    """Whether the calls on each topic wait in the order in which they were begun."""
    return all(
        [call.message[1] for call in calls] == sorted(call.message[1] for call in calls)
        for calls in node.waiting.values()
    )


def test_once_all_workers_are_met_nothing_is_forwarded() -> None:
    client = Client(workers=4)
    client.run()
    assert sorted(client.calls.routes.direct()) == [at(1), at(2), at(3)]
    for topic in TOPICS * 5:
        client.begin(topic)
    client.run()
    assert client.node.forwarded == 0
    assert sum(map(len, client.node.waiting.values())) == 40


def test_a_client_that_asks_little_makes_one_connection() -> None:
    client = NewClient(workers=2)
    client.connect(worker=0)
    client.run()
    for _ in range(DIRECT_AFTER_CALLS - 2):
        begin(client.calls, "ping")
    assert client.calls.dial(T0) is None
    begin(client.calls, "ping")
    assert client.calls.dial(T0) is not None


class NewClient(Client):
    """A client that has yet to connect."""

    def warm_up(self) -> None:
        pass


def not_greeted() -> Client:
    """Return a client whose node has closed its connections on each greeting, as an original one may."""
    client = NewClient(workers=2)
    for _ in range(MUTE_TRIES):
        client.connect(worker=0)
        client.cut(client.calls.main)
    Client.warm_up(client)
    assert not client.dial(worker=1), "that it closed was just now"
    client.now += RETRY_S
    return client


def test_a_node_that_closed_on_its_greetings_is_greeted_once_more_on_a_connection_of_its_own() -> None:
    client = not_greeted()
    assert client.dial(worker=1)
    [scout] = client.calls.routes.candidates
    assert not client.calls.main.shell.up
    # An original node closes it: nothing else happened, and nothing more will for long.
    client.cut(scout)
    assert client.calls.dial(client.now + RETRY_S - 1) is None
    assert client.calls.dial(client.now + RETRY_S) is not None


def test_one_that_knows_greetings_after_all_is_greeted_on_all_connections() -> None:
    client = not_greeted()
    client.run()
    assert sorted(client.calls.routes.direct()) == [at(1)]
    client.cut(client.calls.main)
    client.connect(worker=0)
    assert [message[0] for message in client.calls.main.shell.up] == [":hello"]


@settings(max_examples=150)
@given(st.data())
def test_calls_take_effect_in_order_and_end_once_whatever_happens_when(data: st.DataObject) -> None:
    workers = data.draw(st.integers(2, 3))
    client = Client(workers)
    node, calls = client.node, client.calls
    for _ in range(data.draw(st.integers(1, 120))):
        lines = client.lines()
        steps: list[tuple[str, Any]] = [("begin", None), ("begin", None), ("dial", None)]
        steps += [("read", line.shell) for line in lines if line.shell.up]
        steps += [("forward", hop) for hop in node.busy_hops()]
        steps += [("reply", line) for line in lines if line.shell.down] * 2
        steps += [("answer", topic) for topic, waiting in node.waiting.items() if waiting]
        if calls.main.shell is None:
            steps += [("connect", None)] * 3
        if data.draw(st.integers(0, 20)) == 0:
            steps += [("cut", line) for line in lines] + [("later", None)]
        step, what = data.draw(st.sampled_from(steps))
        if step == "begin":
            client.begin(data.draw(st.sampled_from(TOPICS[:4])), data.draw(st.sampled_from(["recv", "send"])))
        elif step == "dial":
            client.dial(data.draw(st.integers(0, workers - 1)))
        elif step == "read":
            node.read(what)
        elif step == "forward":
            node.forward(what)
        elif step == "reply":
            calls.receive(what, node.reply(what.shell), client.now)
        elif step == "answer":
            node.answer(what, data.draw(st.integers(0, len(node.waiting[what]) - 1)))
        elif step == "connect":
            client.connect(data.draw(st.integers(0, workers - 1)))
        elif step == "cut":
            client.cut(what)
        elif step == "later":
            client.now += data.draw(st.sampled_from([GRACE_S, REDIAL_S, RETRY_S]))
            calls.tick(client.now)
        client.settle()
        assert is_in_order(node)
    # Whatever state that was: everything ends, each with its own value.
    client.now += RETRY_S
    calls.tick(client.now)
    client.settle()
    if calls.main.shell is None:
        client.connect(0)
    for _ in range(4):
        client.now += RETRY_S  # for what failed before
        client.run()
        assert is_in_order(node)
        for topic, waiting in node.waiting.items():
            while waiting:
                node.answer(topic, 0)
    client.run()
    assert not calls.busy
    assert [call.value for call in client.begun] == [call.id for call in client.begun]
    assert len(calls.ended) == len({call.id for call in calls.ended})
    # And in the end the direct lines are there.
    node.forwarded = 0
    for topic in TOPICS:
        client.begin(topic)
    client.run()
    assert node.forwarded == 0


def joined(workers: int = 2) -> Client:
    client = Client(workers)
    client.run()
    return client


def topic_of(client: Client, worker: int) -> str:
    return next(topic for n in range(1000) if client.node.owner(topic := f"t{n}") == worker)


def test_the_calls_of_a_direct_line_that_is_lost_go_over_the_main_one_with_the_time_that_is_left() -> None:
    client = joined()
    topic = topic_of(client, 1)
    begun = [client.begin(topic) for _ in range(3)]
    client.run()
    client.now += 1
    client.cut(client.calls.routes.direct()[at(1)])
    messages = [message for message in client.calls.main.shell.up if message[0] == ":recv!"]
    assert [message[1:3] for message in messages] == [[call.id, 79_999_000] for call in begun]


def test_a_worker_that_drains_gives_back_its_calls_only() -> None:
    client = joined()
    here, there = client.begin(topic_of(client, 0)), client.begin(topic_of(client, 1))
    client.run()
    line = client.calls.routes.direct()[at(1)]
    refused = client.begin(topic_of(client, 1))
    client.calls.receive(line, framed([":recv!", refused.id, error("draining")]), client.now)
    client.settle()
    cancels = [message[2] for message in line.shell.up if message[0] == ":cancel"]
    assert cancels == [there.id]
    kept_back = client.begin(topic_of(client, 1))
    client.settle()
    assert kept_back.line is None
    client.calls.receive(line, framed([":recv!", there.id, error("cancelled")]), client.now)
    client.settle()
    ids = [message[1] for message in client.calls.main.shell.up]
    assert ids == [there.id, refused.id, kept_back.id]
    assert here.line is client.calls.main
    assert not here.ended


def test_a_barrier_that_is_not_answered_leaves_all_with_the_main_line_and_delays_no_call_beyond_its_time() -> None:
    client = Client(workers=2)
    while not client.calls.routes.direct():
        client.dial(worker=1)
        for line in client.lines():
            while line.shell and line.shell.up and line.shell.up[0][0] == ":hello":
                client.node.read(line.shell)
                client.calls.receive(line, client.node.reply(line.shell), client.now)
                client.settle()  # and whoever is of no use is cut
    line = client.calls.routes.direct()[at(1)]
    call = begin(client.calls, "recv", topic_of(client, 1), timeout=0, now=client.now)
    client.settle()
    assert call.line is None, "it is kept back"
    client.now += BARRIER_S + 0.02
    client.calls.tick(client.now)
    client.settle()
    assert line.hang_up
    assert call.line is client.calls.main
    assert client.calls.dial(client.now) is None


def test_cancelling_and_acknowledging_go_where_their_call_went() -> None:
    client = Client(workers=2, ack=True)
    client.run()
    line = client.calls.routes.direct()[at(1)]
    got, cancelled = client.begin(topic_of(client, 1)), client.begin(topic_of(client, 1))
    client.run()
    client.calls.receive(line, framed([":recv!", got.id, "v"]), client.now)
    client.calls.cancel(cancelled, Call(), 1, client.now)
    client.settle()
    assert [message[0] for message in line.shell.up] == [":ack", ":cancel"]
    assert not client.calls.main.shell.up


def test_an_answer_on_another_line_than_the_call_is_nobodys() -> None:
    client = joined()
    call = client.begin(topic_of(client, 1))
    client.calls.receive(client.calls.main, framed([":recv!", call.id, "stray"]), client.now)
    assert not call.ended


def overtaken() -> tuple[Client, list[Call]]:
    """Return a client whose main line has older calls on a topic than the direct line of its worker."""
    client = Client(workers=2)
    topic = topic_of(client, 1)
    older = [client.begin(topic) for _ in range(3)]
    client.run()
    younger = [client.begin(topic) for _ in range(3)]
    client.run()
    assert client.node.forwarded == 3
    assert is_in_order(client.node)
    return client, older + younger


def test_when_the_main_line_is_lost_its_older_calls_keep_their_place_ahead_of_those_on_a_direct_one() -> None:
    client, begun = overtaken()
    client.cut(client.calls.main)
    client.connect(worker=0)
    client.run(dials=False)
    [waiting] = [calls for calls in client.node.waiting.values() if calls]
    assert [call.message[1] for call in waiting] == [call.id for call in begun]


def test_when_the_main_line_drains_its_older_calls_keep_their_place_too() -> None:
    client, begun = overtaken()
    main, direct = client.calls.main, client.calls.routes.direct()[at(1)]
    refused = begin(client.calls, "recv", topic_of(client, 0), timeout=10, now=client.now)
    client.calls.receive(main, framed([":recv!", refused.id, error("draining")]), client.now)
    client.settle()
    for line, calls in ((main, begun[:3]), (direct, begun[3:])):
        for call in calls:
            assert not line.hang_up, "first every call is taken back"
            client.calls.receive(line, framed([":recv!", call.id, error("cancelled")]), client.now)
        assert line.hang_up
    client.settle()
    client.connect(worker=0)
    client.run(dials=False)
    assert is_in_order(client.node)
    [waiting] = [calls for calls in client.node.waiting.values() if len(calls) > 1]
    assert [call.message[1] for call in waiting] == [call.id for call in begun]


def test_a_direct_line_without_older_calls_on_the_main_one_outlives_it() -> None:
    client = joined()
    call = client.begin(topic_of(client, 1))
    client.run()
    line = client.calls.routes.direct()[at(1)]
    client.cut(client.calls.main)
    assert call.line is line
    meanwhile = client.begin(topic_of(client, 1))
    client.settle()
    assert meanwhile.line is line
    client.connect(worker=1)
    client.run()
    assert client.node.forwarded == 0
    assert sorted(client.calls.routes.direct()) == [at(0), at(1)]
