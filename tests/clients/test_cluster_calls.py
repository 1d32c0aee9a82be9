"""The pure core at nodes: against a model of those, whose ring changes at every moment that a test can think of."""

from __future__ import annotations

from typing import Any

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.clients.call import GRACE_S, Call
from skywalker.clients.calls import BARRIER_S, ELSEWHERE_S, GONE_S, MUTE_TRIES, Calls
from skywalker.clients.line import Line
from skywalker.clients.routes import DIRECT_AFTER_CALLS, REDIAL_S, RETRY_S, WANTED_AFTER_CALLS, Dial
from skywalker.deadlines import PRECISION_S
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S
from skywalker.members import Place
from skywalker.ring import token_of
from skywalker.wire import values
from tests.clients.model_cluster import Held, ModelCluster, member
from tests.clients.scripted import error, framed
from tests.clients.test_calls import T0, begin
from tests.clients.test_calls import settings as connect_settings

TOPICS = [f"topic-{number}" for number in range(8)]


class Client:
    """The core with a shell that does what a test says, at a model of a cluster, or of a node."""

    def __init__(self, nodes: int, workers: int = 2, *, warm: bool = True, **changes: Any) -> None:
        self.cluster = ModelCluster(member(number, workers) for number in range(nodes))
        self.calls = Calls(connect_settings(where="a:1" if nodes == 1 else "a:1,b:1", **changes))
        self.now = T0
        self.begun: list[Call] = []
        self.dials: list[Dial] = []  # attempts that are under way
        self._met = 0
        if warm:
            self.warm_up()

    def warm_up(self) -> None:
        """Connect, and make the calls that make direct lines worth it."""
        self.connect(Place("n0", 0))
        self.run()  # one that answers all else before a greeting, and late, counts as one that knows none
        for _ in range(DIRECT_AFTER_CALLS):
            call = begin(self.calls, "ping")
            self.calls.receive(self.calls.main, framed([":ping", call.id, True]), self.now)
        self.settle()
        main = self.calls.main.shell
        main.up = type(main.up)(message for message in main.up if message[0] != ":ping")
        self.calls.ended.clear()

    def lines(self) -> list[Line]:
        """Return the lines that have a connection."""
        found = [*self.calls._lines(), *self.calls.routes.candidates]
        return [line for line in dict.fromkeys(found) if line.shell is not None]

    def begin(self, topic: str, kind: Any = "recv") -> Call:
        """Begin a call that waits."""
        call = begin(self.calls, kind, topic, *(["v"] if kind == "send" else []), timeout=1e4 * 8, now=self.now)
        self.begun.append(call)
        return call

    def settle(self) -> None:
        """Do what the core wants done."""
        for line in [line for line in self.calls.touched if line.hang_up and line.shell is not None]:
            self.cut(line)
        self.cluster.write(self.calls)

    def cut(self, line: Line) -> None:
        """Lose a connection."""
        if line.shell is None:
            return
        self.cluster.cut(line)
        line.shell = None
        if line is self.calls.main:
            self.calls.disconnected("cut", self.now)
        else:
            self.calls.lost(line, self.now)
        self.settle()

    def direct(self) -> Line:
        """Return the line to the second worker of the first node, which is made anew if that is due."""
        self.run()
        return self.calls.routes.direct()[Place("n0", 1)]

    def connect(self, place: Place) -> None:
        """Make a main connection."""
        self.cluster.connect(self.calls.main, place)
        self.calls.connected_to_node(self.now, self.cluster.nodes[place.node].member.address)
        self.settle()

    def ask_for_dials(self) -> None:
        """Begin the attempts that are wanted."""
        while (wanted := self.calls.dial(self.now)) is not None:
            assert wanted.node not in [dial.node for dial in self.dials], "one attempt at a time for each node"
            self.dials.append(wanted)

    def finish_dial(self, dial: Dial, worker: int) -> None:
        """Have an attempt meet a worker, or nobody if its node is dead."""
        self.dials.remove(dial)
        node = self.cluster.nodes[dial.node or self.home()]
        if node.alive:
            place = Place(node.member.id, worker % node.member.workers)
            self.cluster.connect(self.calls.opened(dial, self.now), place)
        else:
            self.calls.not_opened(dial, self.now)
        self.settle()

    def home(self) -> str:
        return self.calls.main.shell.place.node if self.calls.main.shell else "n0"

    def kill(self, id: str) -> None:
        """Kill a node."""
        self.cluster.nodes[id].alive = False
        for line in self.lines():
            if line.shell is not None and line.shell.place.node == id:
                self.cut(line)

    def step(self, reconnect: bool = True) -> bool:
        """Have one thing happen, if anything is about to. Nothing that waits for a partner is answered."""
        self.settle()
        lines = self.lines()
        if self.calls.main.shell is None:
            if not reconnect:
                return False
            self.connect(next(each for each in self.cluster.places() if not self.cluster.nodes[each.node].leaving))
        elif up := [line for line in lines if line.shell.up]:
            self.cluster.read(up[0].shell)
        elif hops := self.cluster.busy_hops():
            self.cluster.forward(hops[0])
        elif down := [line for line in lines if line.shell.down]:
            self.calls.receive(down[0], self.cluster.reply(down[0].shell), self.now)
        else:
            self.ask_for_dials()
            if not self.dials:
                return False
            self._met += 1
            self.finish_dial(self.dials[0], self._met // (len(self.cluster.nodes) + 1))
        return True

    def run(self, reconnect: bool = True) -> None:
        """Go on until nothing happens any more, or the main connection is lost and that is not to be made anew."""
        while self.step(reconnect):
            pass

    def everybody_sees(self) -> None:
        """Have every node use the ring as it is."""
        for id, node in self.cluster.nodes.items():
            if node.alive and not node.leaving:
                self.cluster.see(id, self.cluster.truth())

    def meet_all(self, topics: list[str]) -> None:
        """Call all topics until the client has had a chance to go directly."""
        for _ in range(WANTED_AFTER_CALLS + 1):
            for topic in topics:
                self.begin(topic)
            self.run()
            self.answer_all()
            self.run()

    def answer_all(self) -> None:
        for call in [*self.cluster.calls]:
            if isinstance(call.at, Place):
                self.cluster.answer(call)


def held(client: Client, topic: str) -> list[Held]:
    """Return the calls that wait on a topic, at whatever one place."""
    found = [calls for (_, each), calls in client.cluster.waiting.items() if each == topic and calls]
    assert len(found) <= 1, "they are at one place"
    return found[0] if found else []


def owner(client: Client, topic: str) -> Place:
    return client.cluster.owner(Place(client.home(), 0), topic)


def topics_of(client: Client, node: str, count: int = 1) -> list[str]:
    """Return topics that a node owns."""
    found = (topic for n in range(10_000) if owner(client, topic := f"t{n}").node == node)
    return [next(found) for _ in range(count)]


# At one node.


def topic_of(client: Client, worker: int) -> str:
    """Return a topic that a worker of the first node owns."""
    return next(topic for n in range(1000) if owner(client, topic := f"t{n}") == Place("n0", worker))


def not_greeted() -> Client:
    """Return a client whose node has closed its connections on each greeting, as an original one may."""
    client = Client(nodes=1, warm=False)
    for _ in range(MUTE_TRIES):
        client.connect(Place("n0", 0))
        client.cut(client.calls.main)
    client.warm_up()
    assert client.calls.dial(client.now) is None, "that it closed was just now"
    client.now += RETRY_S
    return client


def test_a_node_that_closed_on_its_greetings_is_greeted_once_more_on_a_connection_of_its_own() -> None:
    client = not_greeted()
    client.ask_for_dials()
    client.finish_dial(client.dials[0], worker=1)
    [scout] = client.calls.routes.candidates
    assert not client.calls.main.shell.up
    # An original node closes it: nothing else happened, and nothing more will for long.
    client.cut(scout)
    assert client.calls.dial(client.now + RETRY_S - 1) is None
    assert client.calls.dial(client.now + RETRY_S) is not None


def test_one_that_knows_greetings_after_all_is_greeted_on_all_connections() -> None:
    client = not_greeted()
    assert client.direct()
    client.cut(client.calls.main)
    client.connect(Place("n0", 0))
    assert [message[0] for message in client.calls.main.shell.up][:1] == [":hello"]


def at_barrier() -> tuple[Client, Line]:
    """Return a client at one node, and the line to its second worker, whose barrier is under way."""
    client = Client(nodes=1)
    while not client.calls.routes.direct():
        client.ask_for_dials()
        for dial in [*client.dials]:
            client.finish_dial(dial, worker=1)
        for line in client.lines():
            while line.shell and line.shell.up and line.shell.up[0][0] in (":hello", ":nodes"):
                client.cluster.read(line.shell)
                client.calls.receive(line, client.cluster.reply(line.shell), client.now)
                client.settle()  # and whoever is of no use is cut
    return client, client.calls.routes.direct()[Place("n0", 1)]


def strange(method: str, id: int) -> bytes:
    """Return a reply that has no form in Python: a map whose key is a list."""
    body = b"\x93" + msgpack.packb(method) + msgpack.packb(id) + b"\x81\x91\x01\x01"
    return len(body).to_bytes(2, "big") + body


def test_a_barrier_that_is_not_answered_leaves_all_with_the_main_line_and_delays_no_call_beyond_its_time() -> None:
    client, line = at_barrier()
    call = begin(client.calls, "recv", topic_of(client, 1), timeout=0, now=client.now)
    client.settle()
    assert call.line is None, "it is kept back"
    client.now += BARRIER_S + 0.02
    client.calls.tick(client.now)
    client.settle()
    assert line.hang_up
    assert call.line is client.calls.main
    assert client.calls.dial(client.now) is None


def test_a_barrier_whose_answer_names_groups_that_python_has_no_keys_for_is_answered_all_the_same() -> None:
    client, line = at_barrier()
    call = client.begin(topic_of(client, 1))
    client.settle()
    assert call.line is None, "it is kept back"
    [[method, id, _]] = client.calls.main.shell.up
    assert method == ":topic"
    client.calls.receive(client.calls.main, strange(method, id), client.now)
    client.settle()
    assert call.line is line


def test_what_a_worker_gives_back_unasked_stays_ahead_of_younger_calls_that_wait_elsewhere() -> None:
    client = Client(nodes=1)
    topic = topic_of(client, 1)
    older = client.begin(topic)
    line, main = client.direct(), client.calls.main
    younger = client.begin(topic)
    client.run()
    assert (older.line, younger.line) == (main, line)
    [first, _] = held(client, topic)
    client.cluster._forget(first)
    client.calls.receive(main, framed([":recv!", older.id, error("draining")]), client.now)
    client.run()
    assert [each.id for each in held(client, topic)] == [older.id, younger.id]


def test_what_is_on_its_way_over_a_line_is_not_lost_with_another_that_has_older_calls() -> None:
    client = Client(nodes=1)
    topic = topic_of(client, 1)
    older = client.begin(topic)
    line = client.direct()
    given, taken, waits = client.begin(topic), client.begin(topic, "send"), client.begin(topic)
    client.run()
    assert (given.line, taken.line, waits.line) == (line, line, line)
    for call in [each for each in held(client, topic) if each.id in (given.id, taken.id)]:
        client.cluster.answer(call)
    client.cut(client.calls.main)
    client.run()
    assert (given.value, taken.value, taken.doubt) == (given.id, taken.id, "")
    assert [each.id for each in held(client, topic)] == [older.id, waits.id]
    assert client.direct() is not line


def test_a_call_that_comes_while_older_ones_are_taken_back_does_not_go_ahead_over_another_line() -> None:
    client = Client(nodes=1, workers=3)
    topic = topic_of(client, 1)
    first, second = client.begin(topic), client.begin(topic)
    client.run()
    main, direct = client.calls.main, {place.worker: line for place, line in client.calls.routes.direct().items()}
    assert (first.line, second.line) == (main, main)
    refused = client.begin(topic_of(client, 0))
    client.settle()
    client.calls.receive(main, framed([":recv!", refused.id, error("draining")]), client.now)
    youngest = client.begin(topic)
    # The second is given back before the first, and what waits is looked at.
    client.calls.receive(main, framed([":recv!", second.id, error("cancelled")]), client.now)
    client.cluster._forget(held(client, topic)[1])
    client.cut(direct[2])
    assert (first.line, second.line, youngest.line) == (main, None, None)
    client.run()
    assert [each.id for each in held(client, topic)] == [first.id, second.id, youngest.id]
    assert client.cluster.overtaken == []
    assert not client.calls._stays.by_topic
    assert client.direct() is direct[1], "it is not left for that"


def test_a_worker_that_hangs_does_not_keep_calls_for_long_that_another_gave_back() -> None:
    client = Client(nodes=1)
    topic = topic_of(client, 1)
    older = client.begin(topic)
    line, main = client.direct(), client.calls.main
    younger = client.begin(topic)
    client.run()
    client.calls.receive(main, framed([":recv!", older.id, error("draining")]), client.now)
    client.settle()
    line.shell.up.clear()
    client.run()
    assert (older.line, younger.line) == (None, line)
    client.now += GONE_S + PRECISION_S
    client.calls.tick(client.now)
    client.run()
    assert [each.id for each in held(client, topic)] == [older.id, younger.id]


def test_a_line_whose_barrier_is_ended_with_all_calls_is_joined_another_time() -> None:
    client, line = at_barrier()
    client.calls.receive(client.calls.main, framed([":error", None, error("unauthorized")]), client.now)
    client.settle()
    assert line.hang_up
    client.connect(Place("n0", 0))
    call = client.begin(topic_of(client, 1))
    client.run()
    assert call.line is not None
    assert client.direct() is not line


# In a cluster.


def test_a_node_that_does_not_answer_holds_up_no_other() -> None:
    client = Client(nodes=4)
    client.run()
    topics = [topics_of(client, f"n{number}")[0] for number in (1, 2, 3)]
    client.cluster.nodes["n1"].alive = False
    for topic in topics * WANTED_AFTER_CALLS:
        client.begin(topic)
    client.ask_for_dials()
    assert sorted(dial.node for dial in client.dials) == ["n1", "n2", "n3"]
    for dial in [*client.dials]:
        if dial.node != "n1":
            client.dials.remove(dial)
            node = client.cluster.nodes[dial.node]
            assert dial.address == node.member.address
            place = owner(client, topics[int(dial.node[1]) - 1])
            client.cluster.connect(client.calls.opened(dial, client.now), place)
    stuck, client.dials = client.dials, []
    client.run()
    assert {place.node for place in client.calls.routes.direct()} == {"n2", "n3"}
    # And what failed is tried less and less often.
    waits = []
    for _ in range(4):
        client.calls.not_opened(stuck[0], client.now)
        waits.append(client.calls.routes.dial_at - client.now)
        for topic in topics[:1] * WANTED_AFTER_CALLS:
            client.begin(topic)
        client.now += waits[-1]
        for topic in topics[:1] * WANTED_AFTER_CALLS:
            client.begin(topic)
        client.ask_for_dials()
        assert [dial.node for dial in client.dials] == ["n1"]
        client.dials.clear()
    assert waits == [REDIAL_S, 8 * REDIAL_S, 64 * REDIAL_S, 512 * REDIAL_S]


def test_a_node_that_is_gone_without_a_word_keeps_no_call_for_long() -> None:
    client = Client(nodes=3)
    client.run()
    [topic] = topics_of(client, "n2")
    client.meet_all([topic])
    call = client.begin(topic)
    client.run()
    line = call.line
    assert line is not None
    # It is cut off: nobody closes the connection.
    client.cluster.nodes["n2"].alive = False
    link = line.shell
    client.everybody_sees()
    while client.calls.main.shell.up or client.calls.main.shell.down:
        if client.calls.main.shell.up:
            client.cluster.read(client.calls.main.shell)
        else:
            client.calls.receive(client.calls.main, client.cluster.reply(client.calls.main.shell), client.now)
        client.settle()
    assert [message[0] for message in link.up] == [":cancel", ":ping"]
    wait = client.calls.wait(client.now)
    assert wait is not None
    assert wait <= GONE_S + PRECISION_S
    client.now += wait
    client.calls.tick(client.now)
    assert ":ping" in line.hang_up
    client.settle()
    client.run()
    assert [each.id for each in held(client, topic)] == [call.id]


def news(client: Client, line: Line, version: str, leaving: bool = False) -> None:
    """Have a node push what it says of its ring."""
    client.calls.receive(line, framed([":ring", None, {"version": version, "leaving": leaving}]), client.now)
    client.settle()


def test_a_main_line_whose_node_hangs_is_left_once_others_know_another_ring() -> None:
    client = Client(nodes=3)
    client.run()
    [topic] = topics_of(client, "n2")
    client.meet_all([topic])
    main = client.calls.main
    call = client.begin("anything")
    client.settle()
    main.shell.up.clear()
    news(client, client.calls.routes.direct()[owner(client, topic)], "newer")
    assert [message[0] for message in main.shell.up] == [":ping"]
    news(client, client.calls.routes.direct()[owner(client, topic)], "newest")
    assert [message[0] for message in main.shell.up] == [":ping"], "it is asked once"
    client.now += ELSEWHERE_S + PRECISION_S
    client.calls.tick(client.now)
    assert ":ping" in main.hang_up
    client.settle()
    client.connect(Place("n1", 0))
    assert call.line is client.calls.main


def test_a_main_line_whose_node_lives_is_kept_whatever_others_say() -> None:
    client = Client(nodes=3)
    client.run()
    [topic] = topics_of(client, "n2")
    client.meet_all([topic])
    main = client.calls.main
    news(client, client.calls.routes.direct()[owner(client, topic)], "newer")
    client.run()
    client.now += 2 * ELSEWHERE_S
    client.calls.tick(client.now)
    assert not main.hang_up


def test_who_is_there_is_asked_again_if_that_changed_meanwhile() -> None:
    client = Client(nodes=3)
    client.run()
    new = member(7)
    client.cluster.add(new)
    truth = client.cluster.truth()
    client.calls.receive(
        client.calls.main, framed([":ring", None, {"version": "between", "leaving": False}]), client.now
    )
    client.settle()
    client.cluster.see("n0", truth)
    client.run()
    assert client.calls._version == truth.version
    asked = client.calls._last_id
    news(client, client.calls.main, truth.version)
    assert client.calls._last_id == asked, "it is known"


def test_a_node_that_does_not_tell_who_is_there_is_asked_again_and_one_that_refuses_is_not() -> None:
    client = Client(nodes=3)
    client.run()
    before = client.calls._version
    for _ in range(2):
        news(client, client.calls.main, "newer")
        assert [message[0] for message in client.calls.main.shell.up] == [":nodes"]
        client.calls.main.shell.up.clear()
        client.now += DEFAULT_CONTROL_TIMEOUT_S + GRACE_S + PRECISION_S
        client.calls.tick(client.now)
        client.settle()
        [asked] = client.calls.main.shell.up
        client.calls.main.shell.up.clear()
        refused = framed([":nodes", asked[1], error("unknown-method")])
        client.calls.receive(client.calls.main, refused, client.now)
        client.settle()
        assert not client.calls.main.shell.up
    assert client.calls._version == before, "the last good view is used"


def test_a_node_whose_answer_python_has_no_form_for_is_asked_again_once_the_ring_is_another() -> None:
    client = Client(nodes=3)
    client.run()
    for version in ("newer", "newest"):
        news(client, client.calls.main, version)
        [[method, id]] = client.calls.main.shell.up
        client.calls.main.shell.up.clear()
        assert method == ":nodes"
        client.calls.receive(client.calls.main, strange(method, id), client.now)
        client.settle()


def test_what_answers_nodes_with_nonsense_leaves_the_node_by_itself() -> None:
    client = Client(nodes=1, warm=False)
    client.connect(Place("n0", 0))
    main = client.calls.main
    client.cluster.read(main.shell)
    client.calls.receive(main, client.cluster.reply(main.shell), client.now)
    client.settle()
    method, id = main.shell.up.popleft()
    client.calls.receive(main, framed([method, id, {"nodes": "many"}]), client.now)
    client.run()
    client.meet_all(TOPICS)
    assert [*client.calls.routes.direct()] == [Place("n0", 1)]


def test_a_call_that_comes_as_a_line_is_left_for_the_sake_of_order_does_not_overtake_what_was_there() -> None:
    client = Client(nodes=2)
    client.run()
    new = member(7)
    then = client.cluster.truth(new).ring
    topic = next(each for each in topics_of(client, "n1", 100) if then.owner(token_of(values.pack(each))).node == "n7")
    client.meet_all([topic])
    older = client.begin(topic)
    client.run()
    client.cluster.add(new)
    client.everybody_sees()
    client.run()
    beside = [
        each for each in topics_of(client, "n7", 100) if each != topic and owner(client, each) == owner(client, topic)
    ]
    for _ in range(WANTED_AFTER_CALLS):
        client.begin(beside[0])
    client.run()
    younger = client.begin(topic)
    client.run()
    first, second = older.line, younger.line
    assert first is not None
    assert second is not None
    assert [line.shell.place.node for line in (first, second)] == ["n1", "n7"]
    main = client.calls.main.shell
    client.cluster.cut(first)
    first.shell = None
    client.calls.lost(first, client.now)
    youngest = client.begin(topic)  # before the second is left
    client.run()
    assert client.calls.main.shell is main
    assert [each.id for each in held(client, topic)] == [older.id, younger.id, youngest.id]


@settings(max_examples=60)
@given(st.data())
def test_whatever_becomes_of_the_ring_calls_take_effect_in_order_and_end_once(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 3))
    client = Client(nodes, workers=data.draw(st.integers(2, 3) if nodes == 1 else st.integers(1, 2)))
    cluster, calls = client.cluster, client.calls
    if data.draw(st.booleans()):
        client.meet_all(TOPICS[:4])
    spare = [member(number, 2) for number in (7, 8)]
    for _ in range(data.draw(st.integers(1, 150))):
        lines = client.lines()
        steps: list[tuple[str, Any]] = [("begin", None)] * 3 + [("dials", None)]
        steps += [("dial", dial) for dial in client.dials]
        steps += [("read", line.shell) for line in lines if line.shell.up]
        steps += [("forward", hop) for hop in cluster.busy_hops()]
        steps += [("reply", line) for line in lines if line.shell.down] * 2
        steps += [("answer", call) for call in cluster.calls if isinstance(call.at, Place)]
        serving = [id for id, node in cluster.nodes.items() if node.alive and not node.leaving]
        truth = cluster.truth() if serving else None
        if truth is not None:
            steps += [("see", id) for id in serving if cluster.nodes[id].view.version != truth.version] * 2
        if calls.main.shell is None:
            steps += [("connect", None)] * 3
        if data.draw(st.integers(0, 10)) == 0:
            steps += [("cut", line) for line in lines] + [("later", None)]
            steps += [("replace", line.shell) for line in lines]
            waiting = [call for call in cluster.calls if isinstance(call.at, Place)]
            steps += [("give back", call) for call in waiting if call.link.replaced]
            steps += [("join", None)] * len(spare)
            if len(serving) > 1:
                steps += [(how, id) for how in ("drain", "kill") for id in serving]
        step, what = data.draw(st.sampled_from(steps))
        if step == "begin":
            client.begin(data.draw(st.sampled_from(TOPICS[:4])), data.draw(st.sampled_from(["recv", "send"])))
        elif step == "dials":
            client.ask_for_dials()
        elif step == "dial":
            client.finish_dial(what, data.draw(st.integers(0, 1)))
        elif step == "read":
            cluster.read(what)
        elif step == "forward":
            cluster.forward(what)
        elif step == "reply":
            calls.receive(what, cluster.reply(what.shell), client.now)
        elif step == "answer":
            cluster.answer(what)
        elif step == "see":
            cluster.see(what, cluster.truth())
        elif step == "connect":
            client.connect(data.draw(st.sampled_from(cluster.places())))
        elif step == "cut":
            client.cut(what)
        elif step == "later":
            client.now += data.draw(st.sampled_from([GRACE_S, REDIAL_S, RETRY_S]))
            calls.tick(client.now)
        elif step == "replace":
            what.replaced = True
        elif step == "give back":
            cluster.give_back(what)
        elif step == "join":
            cluster.add(spare.pop())
        elif step == "drain":
            cluster.drain(what)
        elif step == "kill":
            client.kill(what)
        client.settle()
        assert cluster.overtaken == []
    # Whatever state that was: once the ring has settled everything ends, each with its own value.
    for id, node in cluster.nodes.items():
        if node.leaving and node.alive:
            client.kill(id)
    for line in client.lines():
        if line.shell is not None and line.shell.replaced:
            client.cut(line)
    for _ in range(4):
        client.everybody_sees()
        client.run()
        client.now += RETRY_S  # for what failed before
        calls.tick(client.now)
        client.run()
        assert cluster.overtaken == []
        client.answer_all()
        client.run()
    assert not calls.busy
    assert [call.value for call in client.begun] == [call.id for call in client.begun]
    assert len(calls.ended) == len({call.id for call in calls.ended})
    # And in the end the direct lines are there.
    client.meet_all(TOPICS)
    cluster.forwarded = 0
    for topic in TOPICS:
        client.begin(topic)
    client.run()
    assert cluster.forwarded == 0
    assert not calls._stays.by_topic
