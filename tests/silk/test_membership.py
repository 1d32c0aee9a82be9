"""One node and what it answers: every message of the dialect as data, nonsense, and what has limits."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from skywalker.silk import pace, peers, visits
from skywalker.silk.claims import MAX_MEMBERS
from skywalker.silk.events import Changed, Failed, Joined, Left, Recovered, Suspected
from skywalker.silk.info import Handling, NodeInfo
from skywalker.silk.membership import Membership
from skywalker.silk.outbox import Action, Answer, Broadcast, Ignore, Listen, Outbox, Part, Reached, Refused, Send
from skywalker.wire.silk import CONNECT, FAIL, JOIN, KEEPALIVE, LEAVE, MEMBERS, REPLY, TO_ALL, Message

START_S = 1000.0


def info(id: str, **changes: Any) -> NodeInfo:
    return NodeInfo(**{"id": id, "name": "", "router": f"tcp://{id}:1", "pub": f"tcp://{id}:2", **changes})


ME = info("me", name="kuiper", keepalive_s=0.5, messages={"resize": Handling(4, 0.25)})


class Alone:
    """A node `me`, and words of others that come to it in frames."""

    def __init__(self, me: NodeInfo = ME, most: int = MAX_MEMBERS) -> None:
        numbers = itertools.count(1)
        self.node = Membership(me, luck=lambda: 0.5, new_id=lambda: f"m{next(numbers)}", now=START_S, most=most)
        self.now = START_S

    def hears(self, type: str, data: Any = None, *, src: str = "a", dest: str = "me", **fields: Any) -> list[Action]:
        """Return what the node does about a message."""
        message = Message(src, dest, fields.pop("id", "1"), type, data, **fields)
        self.node.received(Message.decode(message.encode()), self.now)
        return self.node.actions()

    def meets(self, *ids: str) -> Alone:
        """Have these be members."""
        for id in ids:
            self.hears(CONNECT, info(id).as_map(), src=id)
        return self

    def passes(self, seconds: float) -> list[Action]:
        """Let time pass as wait() says, and return what is done."""
        actions = []
        end = self.now + seconds
        while (wait := self.node.wait(self.now)) is not None and self.now + wait <= end:
            self.now += max(wait, 1e-4)
            self.node.tick(self.now)
            actions += self.node.actions()
        self.now = end
        return actions


def sent(actions: list[Action]) -> list[Message]:
    return [each.message for each in actions if isinstance(each, Send | Answer | Broadcast)]


# The messages of the dialect.


def test_a_member_that_asks_who_is_there_finds_itself_in_the_list() -> None:
    (answer,) = Alone().meets("a", "b").hears(MEMBERS)
    assert isinstance(answer, Send)
    assert [*answer.message.data["cluster"]] == ["a", "b"]


def test_who_joins_waits_only_so_long_for_others() -> None:
    alone = Alone()
    alone.node.join("tcp://a:1", alone.now)
    (question,) = sent(alone.node.actions())
    told = {"cluster": {"dead": info("dead").brief()}, "me": info("a").as_map()}
    assert Reached("tcp://a:1") not in alone.hears(REPLY, told, reply=question.id)
    assert Reached("tcp://a:1") in alone.passes(pace.ARRIVE_S + 0.1)


def test_a_join_goes_on_until_somebody_answers() -> None:
    alone = Alone()
    alone.node.join("tcp://a:1", alone.now)
    actions = [*alone.node.actions(), *alone.passes(10)]
    joins = [each for each in sent(actions) if each.type == JOIN]
    # Whoever comes there in the end is not told of all of them.
    assert actions.count(Part("tcp://a:1")) == len(joins) - 1
    assert 8 <= len(joins) <= 21
    assert len({each.id for each in joins}) == len(joins)
    alone.hears(REPLY, {"cluster": {}, "me": info("a").as_map()}, reply=joins[-1].id)
    assert JOIN not in {each.type for each in sent(alone.passes(1))}


def test_a_join_that_is_abandoned_ends() -> None:
    alone = Alone()
    alone.node.join("tcp://a:1", alone.now)
    alone.node.actions()
    alone.node.abandon("tcp://a:1")
    assert alone.node.actions() == [Part("tcp://a:1")]
    alone.node.abandon("tcp://a:1")
    assert alone.node.actions() == []
    assert {each.type for each in sent(alone.passes(60))} == {KEEPALIVE}


@pytest.mark.parametrize("type", [KEEPALIVE, REPLY, MEMBERS, FAIL, "_unknown", CONNECT])
def test_any_word_of_a_suspected_member_is_enough(type: str) -> None:
    alone = Alone().meets("a")
    assert Suspected(info("a")) in alone.passes(3.2)
    assert Recovered(info("a")) in alone.hears(type, dest="_all" if type in TO_ALL else "me")
    assert Failed(info("a")) not in alone.passes(3.2)


def test_a_leave_is_believed_and_what_others_say_of_it_later_is_not() -> None:
    alone = Alone().meets("a", "b")
    assert alone.hears(LEAVE, dest="_all") == [Ignore("tcp://a:2"), Part("tcp://a:1"), Left(info("a"))]

    def told_of_a() -> list[str]:
        """Have b, when it is asked, say that a is there; return whom that makes us go to."""
        alone.node.join("tcp://b:7", alone.now)
        question = sent(alone.node.actions())[-1]
        told = {"cluster": {"a": info("a").brief()}, "me": info("b").as_map()}
        return [each.dest for each in sent(alone.hears(REPLY, told, src="b", reply=question.id))]

    assert told_of_a() == []
    assert alone.hears(REPLY, info("a").as_map(), reply="?") == []
    assert [*alone.node.members] == ["b"]
    # Its own word is another matter.
    assert Joined(info("a")) in alone.hears(CONNECT, info("a").as_map())
    # From then on it may have failed as well as anybody, and others are right to look for it.
    alone.passes(5)
    alone.meets("b")
    assert [*alone.node.members] == ["b"]
    assert told_of_a() == ["a"]
    alone.meets("a")
    alone.hears(LEAVE, dest="_all")
    alone.now += 60
    alone.meets("b")
    assert told_of_a() == ["a"]


def test_what_a_node_says_of_itself_may_change() -> None:
    alone = Alone().meets("a", "b")
    changed = info("me", messages={"draw": Handling()})
    alone.node.change(changed)
    assert [(each.type, each.dest, each.data) for each in sent(alone.node.actions())] == [
        (CONNECT, "a", changed.as_map()),
        (CONNECT, "b", changed.as_map()),
    ]
    told = info("a", name="new")
    assert alone.hears(CONNECT, told.as_map())[0] == Changed(told)
    assert alone.node.member("a") == told
    assert not [each for each in alone.hears(CONNECT, told.as_map()) if isinstance(each, Changed)]
    moved = info("a", pub="tcp://a:9")
    actions = alone.hears(CONNECT, moved.as_map())
    assert actions[:4] == [Ignore("tcp://a:2"), Part("tcp://a:1"), Listen("tcp://a:9"), Changed(moved)]


# What makes no sense.


@pytest.mark.parametrize("type", [JOIN, CONNECT])
@pytest.mark.parametrize(
    "data",
    [None, {}, 5, "a", [], {"id": "a"}, info("b").as_map(), {**info("a").as_map(), "keepalive": {"period": 10**400}}],
)
def test_an_introduction_without_a_node_object_of_its_sender_is_answered_with_an_error(type: str, data: Any) -> None:
    alone = Alone()
    (answer,) = alone.hears(type, data)
    assert isinstance(answer, Answer)
    assert type in answer.message.data["error"]
    assert (alone.node.members, alone.node.dropped) == ({}, 1)


def test_nobody_is_let_in_at_our_own_endpoint() -> None:
    alone = Alone()
    (answer,) = alone.hears(CONNECT, info("a", router="tcp://me:1").as_map())
    assert "tcp://me:1" in sent([answer])[0].data["error"]
    assert (alone.node.members, alone.node.dropped) == ({}, 1)


@pytest.mark.parametrize("type", [CONNECT, KEEPALIVE, REPLY, LEAVE, FAIL, MEMBERS, JOIN])
def test_what_is_for_another_node_changes_nothing(type: str) -> None:
    alone = Alone().meets("b")
    assert alone.hears(type, info("a").as_map(), dest="who was here before") == []
    assert alone.hears(type, info("b").as_map(), src="b", dest="who was here before") == []
    assert ([*alone.node.members], alone.node.dropped) == (["b"], 2)


@pytest.mark.parametrize("type", [CONNECT, KEEPALIVE, JOIN, LEAVE])
def test_who_has_our_id_is_not_listened_to(type: str) -> None:
    alone = Alone().meets("a")
    assert alone.hears(type, info("me", router="tcp://x:1").as_map(), src="me") == []
    assert ([*alone.node.members], alone.node.dropped) == (["a"], 1)


def test_strangers_do_no_harm() -> None:
    alone = Alone().meets("a")
    for number in range(100):
        for type in (KEEPALIVE, LEAVE, FAIL):
            assert alone.hears(type, {"id": f"x{number}", "cluster": "x"}, src=f"x{number}", dest="_all") == []
    assert [*alone.node.members] == ["a"]
    assert not any(alone.node._gone.is_gone(f"x{number}", alone.now) for number in range(100))


# Limits.


def test_a_full_cluster_lets_nobody_in_and_keeps_who_is_there() -> None:
    alone = Alone(most=3).meets("a", "b", "c")
    answer, part = alone.hears(JOIN, info("d").as_map(), src="d")
    assert (answer.endpoint, part) == ("tcp://d:1", Part("tcp://d:1")), "a node reads nothing where it sends"
    assert "full" in sent([answer])[0].data["error"]
    assert alone.hears(REPLY, info("d").as_map(), src="d", reply="?") == []
    assert ([*alone.node.members], alone.node.dropped) == (["a", "b", "c"], 1)
    told = info("a", name="other")
    assert alone.hears(CONNECT, told.as_map())[0] == Changed(told)
    alone.hears(LEAVE, src="b", dest="_all")
    assert Joined(info("d")) in alone.hears(JOIN, info("d").as_map(), src="d")


def test_a_list_of_more_nodes_than_can_be_looked_for_is_read_as_far_as_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visits, "MAX_VISITS", 512)
    alone = Alone()
    alone.node.join("tcp://a:1", alone.now)
    (question,) = sent(alone.node.actions())
    cluster = {f"x{number}": info(f"x{number}").brief() for number in range(visits.MAX_VISITS + 10)}
    data = {"cluster": cluster, "me": info("a").as_map()}
    alone.node.received(Message("a", "me", "1", REPLY, data, reply=question.id), alone.now)
    tried = {each.dest for each in sent(alone.node.actions())}
    assert len(tried) == visits.MAX_TOLD, "the others wait in line"
    # What this node was told to do it does all the same.
    alone.node.join("tcp://c:1", alone.now)
    assert [each.type for each in sent(alone.node.actions())] == [JOIN]
    # All have their turn, and nothing of it lasts.
    for _ in range(visits.MAX_VISITS // visits.MAX_TOLD + 1):
        tried |= {each.dest for each in sent(alone.passes(pace.TOLD_S + 1.0))}
    assert len(tried - {"_all", "", "a"}) == visits.MAX_VISITS - 1, "one of them is where it has just joined"
    assert {each.dest for each in sent(alone.passes(60))} <= {"_all", "", "a"}


def test_of_very_many_that_failed_all_are_visited_and_few_messages_wait_at_a_time() -> None:
    alone = Alone()
    ids = [f"x{number}" for number in range(10 * visits.MAX_WAITING)]
    alone.meets(*ids)
    alone.now += 0.1
    for id in ids:
        alone.hears(CONNECT, info(id).as_map(), src=id)  # it has lived for a while
    alone.passes((pace.SILENT + 2) * ME.keepalive_s + 2.0)
    assert alone.node.members == {}
    visited: dict[str, float] = {}
    waits: dict[str, float] = {}  # and since when
    waited: list[float] = []
    end = alone.now + 2 * len(ids) * pace.WAIT_S / visits.MAX_WAITING
    while alone.now < end:
        for action in alone.passes(0.1):
            match action:
                case Send(endpoint, message):
                    assert message.type == CONNECT
                    assert endpoint not in waits
                    waits[endpoint] = visited[endpoint] = alone.now
                case Part(endpoint) if endpoint in waits:
                    waited.append(alone.now - waits.pop(endpoint))
            assert len(waits) <= visits.MAX_WAITING + 1, "one more, until it is parted with"
    assert visited.keys() == {info(id).router for id in ids}
    assert min(waited) > pace.WAIT_S / 3
    # Any of them that is there is met again.
    assert Joined(info("x7")) in alone.hears(CONNECT, info("x7").as_map(), src="x7")
    assert info("x7").router not in {each.endpoint for each in alone.passes(2.0) if isinstance(each, Part)}


def test_of_more_than_a_cluster_has_those_that_failed_first_are_given_up() -> None:
    numbers = itertools.count(1)
    outbox = Outbox(ME, lambda: f"m{next(numbers)}")
    looked_for = visits.Visits(outbox, lambda: 0.5)
    for number in range(visits.MAX_LOST + 5):
        looked_for.lost(f"tcp://x{number}:1", f"x{number}", START_S)
    assert outbox.take() == [Part(f"tcp://x{number}:1") for number in range(5)]
    # What others tell is looked at all the same.
    looked_for.told("tcp://new:1", "new", START_S)
    assert [message.dest for message in sent(outbox.take())] == ["new"]
    now, tried = START_S, set()
    while now < START_S + visits.MAX_LOST * pace.WAIT_S / visits.MAX_WAITING:
        wait = looked_for.wait(now)
        assert wait is not None
        now += wait + 0.001
        looked_for.tick(now)
        tried |= {message.dest for message in sent(outbox.take())}
    assert tried - {"new"} == {f"x{number}" for number in range(5, visits.MAX_LOST + 5)}


def test_a_list_that_nobody_asked_for_is_not_read() -> None:
    alone = Alone().meets("a")
    data = {"cluster": {"x": info("x").brief()}, "me": info("a").as_map()}
    for src in ("a", "stranger"):
        alone.node.received(Message(src, "me", "1", REPLY, data, reply="?"), alone.now)
    assert sent(alone.node.actions()) == []


def test_one_that_broadcasts_where_a_dead_one_did_is_still_listened_to() -> None:
    alone = Alone().meets("a")
    moved = info("b", pub="tcp://a:2")
    assert Listen("tcp://a:2") in alone.hears(CONNECT, moved.as_map(), src="b")
    actions = alone.hears(LEAVE, dest="_all")
    assert Left(info("a")) in actions
    assert Ignore("tcp://a:2") not in actions
    assert Ignore("tcp://a:2") in alone.hears(LEAVE, src="b", dest="_all")


def test_why_it_is_not_let_in_is_told() -> None:
    alone = Alone()
    alone.node.join("tcp://a:1", alone.now)
    (question,) = sent(alone.node.actions())
    refusal = Message("a", "me", "1", REPLY, {"error": "the cluster is full"}, reply=question.id)
    alone.node.received(refusal, alone.now)
    assert alone.node.actions() == [Refused("tcp://a:1", "the cluster is full")]
    assert alone.node.wait(alone.now) is not None, "it goes on to ask"


def test_who_takes_itself_for_a_member_is_told_that_it_was_none_and_is_one() -> None:
    alone = Alone().meets("b")
    actions = alone.hears(MEMBERS, info("a").as_map())
    (answer,) = [each for each in actions if isinstance(each, Send)]
    assert (answer.endpoint, answer.message.data) == (
        "tcp://a:1",
        {"cluster": {"b": info("b").brief()}, "me": ME.as_map()},
    )
    assert Joined(info("a")) in actions
    (answer,) = [each for each in alone.hears(MEMBERS, info("a").as_map()) if isinstance(each, Send)]
    assert answer.message.data["cluster"].keys() == {"a", "b"}


# Where messages come from.


def from_there(alone: Alone, origin: str, type: str, data: Any, src: str, **fields: Any) -> list[Action]:
    """Return what the node does about a message that has come from an address."""
    dest = "_all" if type in TO_ALL else "me"
    alone.node.received(Message(src, dest, "1", type, data, **fields), alone.now, origin)
    return alone.node.actions()


HERE = info("me", router="tcp://10.0.0.1:1", pub="tcp://10.0.0.1:2")


@pytest.mark.parametrize(
    "where",
    [
        *("ipc:///run/docker.sock", "tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://127.1:1", "tcp://2130706433:1"),
        *("tcp://[::1]:1", "tcp://[::ffff:127.0.0.1]:1", "tcp://a.localhost.:1", "tcp://0x7f.1:1"),
    ],
)
@pytest.mark.parametrize("which", ["router", "pub"])
def test_nobody_elsewhere_has_a_node_connect_to_its_own_machine(where: str, which: str) -> None:
    told = info("a", **({"router": "tcp://10.0.0.9:1", "pub": "tcp://10.0.0.9:2"} | {which: where}))
    alone = Alone(HERE)
    for type in (JOIN, CONNECT, MEMBERS, REPLY):
        actions = from_there(alone, "10.0.0.9", type, told.as_map(), "a")
        assert {each.endpoint for each in actions if isinstance(each, Send | Listen)} <= {"tcp://10.0.0.9:1"}
    assert alone.node.members == {}
    # Neither by telling of others.
    alone.node.join("tcp://10.0.0.8:1", alone.now)
    (question,) = sent(alone.node.actions())
    teller = info("b", router="tcp://10.0.0.8:1", pub="tcp://10.0.0.8:2")
    other = info("c", router=where).brief()
    actions = from_there(
        alone, "10.0.0.8", REPLY, {"cluster": {"c": other}, "me": teller.as_map()}, "b", reply=question.id
    )
    assert where not in {each.endpoint for each in actions if isinstance(each, Send | Listen)}
    assert [*alone.node.members] == ["b"]
    # Whoever is on the same machine may.
    near = info("d", router=where, pub="ipc:///run/d")
    assert Joined(near) in from_there(alone, "localhost", JOIN, near.as_map(), "d")


@pytest.mark.parametrize("where", ["tcp://0.0.0.0:1", "tcp://*:1", "tcp://[::]:1", "tcp://10.0.0.9:0", "tcp://a:*"])
def test_nobody_is_at_all_addresses_or_at_any_port(where: str) -> None:
    assert NodeInfo.parse(info("a", router=where).as_map()) is None


def test_who_names_another_host_is_asked_there_and_a_member_once_it_answers() -> None:
    alone = Alone(HERE)
    told = info("a", router="tcp://10.0.0.7:1", pub="tcp://10.0.0.7:2")
    actions = from_there(alone, "10.0.0.9", JOIN, told.as_map(), "a")
    assert [each for each in actions if not isinstance(each, Send)] == []
    assert {each.endpoint for each in actions if isinstance(each, Send)} == {"tcp://10.0.0.7:1"}
    (question,) = [each for each in sent(actions) if each.type == CONNECT]
    assert alone.node.members == {}
    assert Joined(told) in from_there(alone, "10.0.0.9", REPLY, told.as_map(), "a", reply=question.id)
    # From where its answer came, it may speak.
    alone.now += 3.5
    assert from_there(alone, "10.0.0.66", CONNECT, info("a", router="tcp://10.0.0.7:1").as_map(), "a") != []
    assert [*alone.node.members] == ["a"]


def test_of_strangers_words_few_go_out_to_a_third_host() -> None:
    alone = Alone(HERE)
    knocks = 0
    for number in range(6_000):
        id = f"x{number}"
        told = info(id, router=f"tcp://10.0.0.7:{1 + number}", pub=f"tcp://10.0.0.7:{1 + number}")
        actions = from_there(alone, "10.0.0.9", JOIN, told.as_map(), id) + alone.passes(0.01)
        knocks += len([each for each in actions if isinstance(each, Send) and each.message.type == CONNECT])
    assert 0 < knocks < 100, "in a minute"
    assert alone.node.members == {}


def test_who_leaves_is_believed_from_its_own_host_if_nobody_else_is_there() -> None:
    one, other = (info(id, router=f"tcp://10.0.0.9:{id}", pub=f"tcp://10.0.0.9:1{id}") for id in "23")
    alone = Alone(HERE)
    from_there(alone, "10.0.0.9", CONNECT, one.as_map(), "2")
    assert from_there(alone, "10.0.0.8", LEAVE, None, "2") == []
    assert Left(one) in from_there(alone, "10.0.0.9", LEAVE, None, "2")
    for each in (one, other):
        from_there(alone, "10.0.0.9", CONNECT, each.as_map(), each.id)
    assert from_there(alone, "10.0.0.9", LEAVE, None, "2") == []
    assert Left(one) in alone.passes(1.5)
    assert [*alone.node.members] == ["3"]


@pytest.mark.parametrize("takes_s", [0.1, 0.3, 0.9])
def test_who_is_said_to_leave_has_a_second_to_answer_any_of_the_questions_and_stays(takes_s: float) -> None:
    one, other = (info(id, router=f"tcp://10.0.0.9:{id}", pub=f"tcp://10.0.0.9:1{id}") for id in "23")
    alone = Alone(HERE)
    for each in (one, other):
        from_there(alone, "10.0.0.9", CONNECT, each.as_map(), each.id)
    from_there(alone, "10.0.0.9", LEAVE, None, "2")
    began = alone.now
    questions: list[tuple[float, str]] = []
    while alone.now < began + 1.5:
        questions += [(alone.now + takes_s, each.id) for each in sent(alone.passes(0.01)) if each.type == CONNECT]
        while questions and questions[0][0] <= alone.now:
            from_there(alone, "10.0.0.9", REPLY, one.as_map(), "2", reply=questions.pop(0)[1])
    assert [*alone.node.members] == ["2", "3"]


def test_a_list_has_those_who_say_little_when_not_all_fit_in_a_message() -> None:
    alone = Alone().meets("a", "b")
    for number in range(400):
        alone.meets("\U0001f600" * 250 + f"{number:05}")
    (answer,) = sent(alone.hears(MEMBERS, src="stranger"))
    assert len(answer.encode()) <= 1024 * 1024
    assert {"a", "b"} <= answer.data["cluster"].keys()


def test_what_members_say_of_themselves_has_room_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_BYTES", 4 * 1024 * 1024)
    alone = Alone()
    for number in range(30):
        told = info(f"x{number}").as_map() | {"junction": {"tokens": [[]] * 4_000}}
        alone.node.received(Message(f"x{number}", "me", "1", CONNECT, told), alone.now)
    assert alone.node._peers._size <= peers.MAX_BYTES
    told = info("y").as_map() | {"junction": {"address": "10.0.0.1", "port": 1, "tokens": [[]] * 100_000}}
    parsed = NodeInfo.parse(told)
    assert parsed is not None
    assert parsed.junction == {"address": "10.0.0.1", "port": 1}
