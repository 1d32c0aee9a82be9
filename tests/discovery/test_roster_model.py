"""Whatever happens to a cluster, in whatever order: who lives is in the snapshot, who died is out in time."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skywalker.address import Address
from skywalker.discovery.contact import Greeting
from skywalker.discovery.pace import DROPPED_S, TOGETHER_S
from skywalker.discovery.roster import Ask, Dial, HangUp, Ping, Publish, Roster
from skywalker.members import Snapshot
from tests.discovery.model_cluster import ME, World, address_of, member_of

NODES = range(1, 6)
ALIASES = {number: Address(f"alias-{number}", 3443) for number in (1, 2)}
numbers = st.sampled_from(NODES)

KNOWN_DEAD_S = 5.0  # a silent one takes the longest: half a second to the ping, 2 to its end, two attempts
KNOWN_ALIVE_S = 2.3  # an attempt that had just begun in vain, and a pause
LOOKED_AGAIN_S = 32.0  # after an address was found to be another's


class Cluster(RuleBasedStateMachine):
    """Nodes that come, die, hang, leave and come back, and a source that lists them or does not."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.listed: frozenset[int] = frozenset()
        self.changed_at = dict.fromkeys(NODES, self.world.now)  # when something last befell each
        self.draining = False

    def hosts(self, number: int) -> list[Address]:
        return [address_of(number), *([ALIASES[number]] if number in ALIASES else [])]

    def is_well(self, number: int) -> bool:
        host = self.world.hosts.get(address_of(number))
        return host is not None and not host.hangs and not host.leaves

    @rule(number=numbers)
    def start(self, number: int) -> None:
        if address_of(number) not in self.world.hosts:
            self.changed_at[number] = self.world.now
            for at in self.hosts(number):
                self.world.serve(member_of(number), at)

    @rule(number=numbers)
    def kill(self, number: int) -> None:
        self.changed_at[number] = self.world.now
        for at in self.hosts(number):
            self.world.kill(at)

    @rule(number=numbers, hangs=st.booleans())
    def hang(self, number: int, hangs: bool) -> None:
        if address_of(number) in self.world.hosts:
            self.changed_at[number] = self.world.now
            for at in self.hosts(number):
                self.world.hosts[at].hangs = hangs

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        if self.is_well(number):
            self.changed_at[number] = self.world.now
            can_say_so = any(self.world.connections.get(at) for at in self.hosts(number))
            for at in self.hosts(number):
                self.world.leave(at)
            if can_say_so and member_of(number).id in self.members():
                self.world.pass_time(TOGETHER_S)  # there was a snapshot just now
            assert not can_say_so or member_of(number).id not in self.members()

    @rule(number=numbers)
    def cut(self, number: int) -> None:
        # Costs a healthy node nothing, so its time goes on.
        for at in self.hosts(number):
            self.world.cut(at)

    @rule(listed=st.frozensets(numbers))
    def find(self, listed: frozenset[int]) -> None:
        for number in listed ^ self.listed:
            self.changed_at[number] = self.world.now
        self.listed = listed
        before = {*self.world.connections}
        hosts = {at for number in listed for at in self.hosts(number)}
        self.world.find(*hosts)
        assert self.world.connections.keys() <= before | hosts

    @rule()
    def drain(self) -> None:
        self.draining = True
        self.world.drain()

    @rule(seconds=st.sampled_from([0.001, 0.04, 0.1, 0.3, 1.0, 2.5, 6.0, 40.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    def members(self) -> set[str]:
        return set(self.world.published[-1][1].by_id) if self.world.published else set()

    @invariant()
    def who_lives_is_in_and_who_died_is_out(self) -> None:
        world = self.world
        if not world.published:
            assert world.now <= 1000.06
            return
        assert (ME.id in self.members()) is (not self.draining or self.members() == {ME.id})
        for number in NODES:
            id, since = member_of(number).id, world.now - self.changed_at[number]
            if number in self.listed and self.is_well(number):
                if since > (LOOKED_AGAIN_S if number in ALIASES else KNOWN_ALIVE_S):
                    assert id in self.members()
            elif since > KNOWN_DEAD_S + (DROPPED_S if self.is_well(number) else 0.0):
                assert id not in self.members()

    @invariant()
    def nobody_is_sought_for_long_whom_the_source_lists_no_more(self) -> None:
        for number in {*NODES} - self.listed:
            if self.world.now - self.changed_at[number] > KNOWN_DEAD_S + DROPPED_S:
                assert not self.world.connections.keys() & {*self.hosts(number)}

    @invariant()
    def something_is_always_due_while_anybody_is_listed(self) -> None:
        wait = self.world.roster.wait(self.world.now)
        if self.listed:
            assert wait is not None
            assert wait <= 30.1

    @invariant()
    def a_node_has_one_connection(self) -> None:
        homes = [host.greeting.member.id for host in self.world.connections.values() if host and host.greeting]
        assert len(homes) == len(set(homes))


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=80, stateful_step_count=40)

addresses = st.sampled_from([*map(address_of, range(4)), *ALIASES.values()])
greetings = st.builds(Greeting, st.sampled_from([*map(member_of, range(4))]), st.booleans(), st.just("v"))
events = st.one_of(
    st.tuples(st.just("found"), st.sets(addresses)),
    st.tuples(st.just("hinted"), addresses),
    st.tuples(st.just("greeted"), addresses, greetings),
    st.tuples(st.just("foreign"), addresses, st.just("why")),
    st.tuples(st.just("ended"), addresses, st.just("why")),
    st.tuples(st.just("answered"), addresses),
    st.tuples(st.just("pushed"), addresses, st.sampled_from("abc"), st.booleans()),
    st.tuples(st.just("listed"), addresses, st.sampled_from(["", *"abc"]), st.sets(greetings.map(lambda g: g.member))),
    st.tuples(st.just("tick")),
    st.tuples(st.just("drain")),
)


@settings(max_examples=200)
@given(
    learning=st.booleans(),
    script=st.lists(st.tuples(events, st.sampled_from([0.0, 0.01, 0.3, 2.0, 700.0])), max_size=60),
    seed=st.integers(0, 10),
)
def test_any_events_in_any_order_open_no_second_connection_and_ask_nothing_of_a_closed_one(
    learning: bool, script: list[tuple[tuple[Any, ...], float]], seed: int
) -> None:
    now = 50.0
    roster = Roster(ME, learning=learning, luck=random.Random(seed).random, now=now, last=[member_of(3)])
    dialled: set[Address] = set()
    greeted: set[Address] = set()
    latest: Snapshot | None = None
    for (name, *arguments), pause in script:
        for action in roster.actions():
            match action:
                case Dial(at):
                    assert at not in dialled | greeted
                    dialled.add(at)
                case Ping(at):
                    assert at in greeted
                case Ask(at):
                    assert learning
                    assert at in greeted
                case HangUp(at):
                    dialled.discard(at)
                    greeted.discard(at)
                case Publish(snapshot):
                    assert latest is None or latest.version != snapshot.version
                    latest = snapshot
        # What a shell can report of an address depends on what is open there.
        where = arguments[0] if arguments else None
        if where in dialled and name in ("greeted", "foreign", "ended"):
            dialled.remove(where)
            greeted |= {where} if name == "greeted" else set()
        elif name == "ended":
            greeted.discard(where)
        getattr(roster, name)(*arguments, now)
        now += pause
    published = [action.snapshot for action in roster.actions() if isinstance(action, Publish)]
    assert roster.snapshot is (published[-1] if published else latest)
