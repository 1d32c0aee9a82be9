"""Finding nodes by Silk: as one who asks, and as a member; real members on loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.discovery import silk_member
from skywalker.discovery.silk import SilkAccess, SilkSource
from skywalker.discovery.silk_member import SilkMember
from skywalker.discovery.url import source_of
from skywalker.errors import DiscoveryError
from skywalker.members import Member
from skywalker.silk import Keys, blocking
from skywalker.silk.endpoints import beside
from tests.discovery.watching import Watch
from tests.helpers import eventually, time_factor

ANYWHERE = "tcp://127.0.0.1:0"
NO_NAME = f"{'x' * 64}.invalid:1"

Nodes = Callable[..., blocking.Node]


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def node(closing: contextlib.ExitStack) -> Nodes:
    """Return a function that makes a member, which is a node of skywalker on this port of 10.0.0.1."""

    def make(port: int = 0, **settings: Any) -> blocking.Node:
        junction = {"junction": {"address": "10.0.0.1", "port": port}} if port else {}
        return closing.enter_context(blocking.Node(**(junction | settings)))

    return make


@pytest.fixture
def closed_port() -> str:
    """Return an endpoint where nobody is."""
    (port,) = free_ports(1)
    return f"tcp://127.0.0.1:{port}"


@pytest.fixture
def mute() -> Iterator[str]:
    """An endpoint that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def at(*ports: int) -> frozenset[Address]:
    return frozenset(Address("10.0.0.1", port) for port in ports)


def access(*members: blocking.Node | str, keys: Path | str = "") -> SilkAccess:
    endpoints = [each if isinstance(each, str) else each.info.router for each in members]
    return SilkAccess.parse(",".join(endpoints), str(keys))


def membership(
    port: int,
    *seeds: blocking.Node | str,
    router: str = ANYWHERE,
    keys: Path | str = "",
    last: Iterable[Address] = (),
    host: str = "127.0.0.1",
) -> SilkMember:
    """Return the source of the node on this port of a host."""
    me = Member(f"id-{port}", f"n{port}", Address(host, port), 2, True, (port, port + 1))
    return SilkMember(me, router, beside(router), access(*seeds, keys=keys), last)


# Asking.


def test_a_stranger_is_told_of_all_nodes_by_any_member_and_joins_nothing(node: Nodes) -> None:
    a, b, plain = node(1), node(2), node()
    for other in (b, plain):
        other.join(a.info.router)
    eventually(lambda: all(len(each.members) == 2 for each in (a, b, plain)))
    for member in (a, b, plain):
        source = SilkSource(access(member))
        finding = source.look()
        assert finding.addresses == at(1, 2), "who is no node of skywalker is none"
        assert 0 < (finding.pause_s or 0) < 10
        assert source_of(f"silk://{member.info.router.removeprefix('tcp://')}").addresses() == at(1, 2)
    assert all(len(each.members) == 2 for each in (a, b, plain))


def test_what_is_in_the_way_is_told_of_each(closed_port: str, mute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skywalker.discovery.silk.ANSWER_S", 0.3)
    source = SilkSource(access(closed_port, mute, "no-such-host.invalid:1", "ipc:///no/such/path", NO_NAME))
    with pytest.raises(DiscoveryError) as error:
        source.look()
    text = str(error.value)
    assert text.startswith(f"{source}: ")
    assert f"{closed_port}: Connection refused" in text
    assert f"{mute}: no node answered within 0.3 s" in text
    assert "tcp://no-such-host.invalid:1: " in text
    assert "ipc:///no/such/path: No such file or directory" in text
    assert f"tcp://{NO_NAME}: '{'x' * 64}.invalid' cannot be a host name" in text


def test_members_with_keys_tell_only_who_has_them(node: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skywalker.discovery.silk.ANSWER_S", 0.5 * time_factor())
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for file in (ours, theirs):
        Keys.generate().save(file)
    member = node(1, keys=ours)
    where = f"silk://{member.info.router.removeprefix('tcp://')}"
    assert source_of(f"{where}?keys={ours}").addresses() == at(1)
    for wrong in (where, f"{where}?keys={theirs}"):
        with pytest.raises(DiscoveryError, match="no node answered"):
            source_of(wrong).addresses()
    with pytest.raises(DiscoveryError, match="cannot be read"):
        source_of(f"{where}?keys={tmp_path / 'missing'}").addresses()


def test_what_a_member_says_of_its_node_is_not_believed_if_it_makes_no_sense(node: Nodes) -> None:
    a = node(1)
    for junction in ({"address": "", "port": 1}, {"address": "10.0.0.1", "port": 70_000}, {"address": 1, "port": 1},
                     {"address": "10.0.0.1", "port": True}, {"address": "10.0.0.1"}, {"port": 5}):  # fmt: skip
        node(junction=junction).join(a.info.router)
    assert SilkSource(access(a)).addresses() == at(1)


# Being a member.


def test_a_member_on_all_addresses_is_told_at_that_of_its_node(node: Nodes) -> None:
    a = node(1)
    with Watch(membership(7, a, router="tcp://0.0.0.0:0")) as watch:
        watch.wait_for(at(1))
        [told] = eventually(lambda: [*a.members.values()])
        assert told.router.startswith("tcp://127.0.0.1:")
        assert told.pub.startswith("tcp://127.0.0.1:")


def test_members_meet_by_ipv6_too() -> None:
    (port,) = free_ports(1)
    place = f"tcp://[::1]:{port}"
    with (
        Watch(membership(7, place, router=place, host="::1")) as first,
        Watch(membership(8, f"[::1]:{port}", router="tcp://[::]:0", host="::1")) as second,
    ):
        first.wait_for({Address("::1", 8)})
        second.wait_for({Address("::1", 7)})
        assert source_of(f"silk://[::1]:{port}").addresses() == {Address("::1", 7), Address("::1", 8)}


def test_members_meet_by_paths_too(node: Nodes, tmp_path: Path) -> None:
    path = f"ipc://{tmp_path}/a"
    with Watch(membership(7, path, router=path)) as first, Watch(membership(8, path, router=f"{path}b")) as second:
        first.wait_for({Address("127.0.0.1", 8)})
        second.wait_for({Address("127.0.0.1", 7)})
        assert SilkSource(access(path)).addresses() == {Address("127.0.0.1", 7), Address("127.0.0.1", 8)}


# Trouble.


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are alone say so soon."""
    monkeypatch.setattr(silk_member, "JOIN_S", 0.3 * time_factor())


@pytest.mark.usefixtures("at_once")
def test_a_name_that_none_can_have_is_told_and_ends_nothing(node: Nodes) -> None:
    with Watch(membership(7, NO_NAME)) as watch:
        watch.wait_for_trouble(1)
        assert "cannot be a host name" in (watch.troubles[0] or "")
        [me] = [thread for thread in threading.enumerate() if thread.name == "silk"]
        assert me.is_alive()
    with Watch(membership(8, NO_NAME, node(1))) as watch:
        watch.wait_for(at(1))


def test_keys_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f'public-key = "{"x" * 40}"\nsecret-key = "{"y" * 40}"\n')
    with Watch(membership(7, keys=tmp_path / "keys")) as watch:
        watch.wait_for_trouble(1)
        assert "holds no pair of keys" in (watch.troubles[0] or "")
