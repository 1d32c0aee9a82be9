"""What other nodes, and those who know them, tell of nodes: records of members, greetings, rings, Consul's answers.

Any value is a member or none, and a member that is one says the same again. All members make a ring that names them by
one version in whatever order they come, and owns every topic. A greeting, an answer with an error, and what Silk tells
of a node are read or not, and nothing else happens. An answer of Consul is addresses that can be dialled, or a
DiscoveryError.

The first byte of an input says what the rest is: MessagePack, or Consul's JSON.
"""

from __future__ import annotations

import json
from typing import Any

from consul.base import Response

from skywalker.address import Address
from skywalker.discovery.consul import ConsulAccess, ConsulSource
from skywalker.discovery.contact import Greeting
from skywalker.errors import DiscoveryError, RequestError
from skywalker.json_form import Unprintable, from_json, to_json
from skywalker.members import MAX_TOKENS, MAX_WORKERS, Member, Snapshot
from skywalker.silk.info import NodeInfo
from skywalker.wire import junction as wire
from skywalker.wire import values

REACHED = Address("10.0.0.1", 3443)
CONSUL = ConsulSource(ConsulAccess(Address("127.0.0.1", 8500)), "skywalker")


def check_input(data: bytes) -> object:
    """Hold the invariant for one value, or one answer."""
    if data[:1] < b"\x80":
        try:
            value = values.unpack(data[1:])
        except ValueError:
            return None
        return check_value(value)
    return check_consul(data[1:2], data[2:])


def check_value(value: Any) -> object:
    """Hold the invariant for something that was told."""
    told = value if isinstance(value, list) else [value]
    members = {member.id: member for each in told if (member := check_member(each)) is not None}
    if members:
        check_ring([*members.values()])
    greeting = Greeting.parse(value, REACHED)
    if greeting is not None:
        assert Member.parse(greeting.member.as_map()) == greeting.member
        assert greeting.stated or greeting.member.address == REACHED
    info = NodeInfo.parse(value)
    if info is not None:
        assert NodeInfo.parse(info.as_map()) == info
        assert info.serves is None or info.serves.port > 0
    refusal = wire.refusal(value)
    assert refusal is None or isinstance(refusal, RequestError)
    try:
        shown = json.dumps(to_json(value), allow_nan=False)
    except (Unprintable, RecursionError):
        return None
    assert repr(from_json(json.loads(shown))) == repr(value) or "Timestamp" in repr(value)
    return shown


def check_member(told: Any) -> Member | None:
    """Return a member, if this is one."""
    member = Member.parse(told)
    if member is not None:
        assert Member.parse(values.unpack(values.pack(member.as_map()))) == member
        assert 0 < member.address.port < 65536
        assert 0 < member.workers <= MAX_WORKERS
        assert 0 < len(member.tokens) <= MAX_TOKENS
        assert [*member.tokens] == sorted(set(member.tokens))
        assert str(member)
    return member


def check_ring(members: list[Member]) -> None:
    """Hold the invariant of a ring."""
    ring = Snapshot(members)
    again = Snapshot(reversed(members))
    assert ring.version == again.version
    assert not ring.diff(again)
    for token in (-(2**63), 0, 2**63 - 1):
        place = ring.ring.owner(token)
        assert place == again.ring.owner(token)
        assert place.worker < ring.by_id[place.node].workers
    assert abs(sum(ring.shares().values()) - 1) < 1e-6
    less = Snapshot(members[1:] or members)
    assert bool(less.diff(ring)) == (len(less) != len(ring))


class Http:
    """Consul's answer, whatever it was asked."""

    status: int
    body: str
    index: str

    def get(self, callback: Any, path: str, params: Any = (), headers: Any = None) -> Any:
        return callback(Response(self.status, {"X-Consul-Index": self.index}, self.body, self.body.encode()))

    put = get


def check_consul(head: bytes, body: bytes) -> object:
    """Hold the invariant of an answer of Consul."""
    http = Http()
    http.status = (200, 200, 200, 403, 500)[(head or b"\0")[0] % 5]
    index, _, http.body = body.decode("utf-8", "replace").partition("\n")
    http.index = index
    CONSUL._patient.http = CONSUL._quick.http = http  # type: ignore[assignment]
    said = []
    for _ in range(2):
        try:
            found = CONSUL.look()
        except DiscoveryError as error:
            said.append(type(error).__name__)
            continue
        for address in found.addresses:
            assert address.host
            assert 0 < address.port < 65536
        said.append(str(sorted(found.addresses)))
    return said
