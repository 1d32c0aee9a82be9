"""What is told of the nodes of a machine, where some of what there is to see was put there by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from skywalker import processes
from skywalker.address import Address
from skywalker.cli import local_nodes
from skywalker.listeners import Listener, in_the_way, listeners

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
HERE = Address("127.0.0.1", 3443)
NODE = "skywalker:3443"
US, THEM = 1000, 1001
OURS = "net:[4026531840]"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    for table in ("tcp", "tcp6"):
        (tmp_path / "net" / table).write_text(HEAD)
    within(tmp_path, "self", OURS)
    return tmp_path


def listen(proc: Path, inode: int, user: int, address: str = "0100007F:0D73") -> None:
    with (proc / "net" / ("tcp" if len(address) == 13 else "tcp6")).open("a") as table:
        table.write(f"   0: {address} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 {user} 0 {inode} 1 0\n")


def within(proc: Path, process: str, network: str) -> None:
    (proc / process / "ns").mkdir(parents=True)
    (proc / process / "ns" / "net").symlink_to(network)


def process(
    proc: Path, pid: int, name: str, sockets: Sequence[int] = (), users: Sequence[int] = (US,), parent: int = 1
) -> None:
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 1 1\n")
    told = [*users, *users[-1:] * (4 - len(users))]
    (proc / str(pid) / "status").write_text(f"Name:\t{name}\nUid:\t" + "\t".join(map(str, told)) + "\n")
    for fd, inode in enumerate(sockets, 3):
        (proc / str(pid) / "fd" / str(fd)).symlink_to(f"socket:[{inode}]")


@pytest.mark.parametrize("owner", [US, local_nodes.ROOT])
def test_a_node_is_known_by_its_name_and_a_listener_of_its_users_or_of_roots(proc: Path, owner: int) -> None:
    listen(proc, 70, owner)
    process(proc, 1, "systemd", [70], [0], parent=0)
    process(proc, 500, NODE, [5, 70])
    assert local_nodes.nodes(proc) == {HERE: 500}


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("skywalker", [US]),
        ("skywalker-0", [US]),
        ("skywalker:3444", [US]),
        (f"{NODE}\nx", [US]),
        (NODE, [THEM]),  # to whom the listener was passed
        (NODE, [US, 0]),  # a set-uid program
    ],
)
def test_what_has_a_listener_and_is_no_node_or_whose_listener_is_not_its_own_is_none(
    proc: Path, name: str, users: list[int]
) -> None:
    listen(proc, 70, US)
    process(proc, 500, name, [70], users)
    assert local_nodes.nodes(proc) == {}


def test_what_only_calls_itself_a_node_is_none(proc: Path) -> None:
    listen(proc, 70, US)
    process(proc, 500, NODE, [71])
    assert local_nodes.nodes(proc) == {}
    assert local_nodes.draining(3443, proc) == set(), "somebody listens"
    assert local_nodes.likely(Listener("127.0.0.1", 3443, US, 70), 3443, proc) == 500
    assert local_nodes.likely(Listener("127.0.0.1", 3443, THEM, 70), 3443, proc) is None


def test_of_a_node_and_a_child_that_was_just_forked_the_node_is_meant(proc: Path) -> None:
    listen(proc, 70, US)
    process(proc, 500, NODE, [70], parent=0)  # nothing is above it in a container
    process(proc, 90, NODE, [70], parent=500)  # numbers begin anew some day
    assert local_nodes.nodes(proc) == {HERE: 500}


def test_a_node_drains_once_it_does_not_listen_at_its_port(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_nodes.os, "geteuid", lambda: US)
    process(proc, 500, NODE, parent=0)
    within(proc, "500", OURS)
    process(proc, 501, NODE)  # a container's, or another user's
    within(proc, "501", "net:[4026532000]")
    process(proc, 502, NODE)
    process(proc, 600, "skywalker:3444")
    process(proc, 700, NODE)
    within(proc, "700", OURS)
    (proc / "700" / "stat").write_text("700 (a) b) Z 1 1 1\n")  # it has ended
    assert local_nodes.draining(3443, proc) == {500}
    listen(proc, 70, THEM, "0200007F:0D73")
    process(proc, 503, NODE, [70], [THEM])
    within(proc, "503", OURS)
    assert local_nodes.draining(3443, proc) == {500}, "somebody else may listen there meanwhile"
    process(proc, 504, NODE, users=[THEM])
    within(proc, "504", OURS)
    assert local_nodes.draining(3443, proc) == {500}, "what another user's process has open is not seen"
    monkeypatch.setattr(local_nodes.os, "geteuid", lambda: local_nodes.ROOT)
    assert local_nodes.draining(3443, proc) == {500, 504}
    listen(proc, 71, US)
    (proc / "500" / "fd" / "9").symlink_to("socket:[71]")
    assert local_nodes.draining(3443, proc) == {504}


def test_what_is_sent_to_an_address_is_a_nodes_if_nobody_else_listens_there(proc: Path) -> None:
    process(proc, 500, NODE, [70])
    assert not local_nodes.serves(500, HERE, proc), "nobody does yet"
    listen(proc, 70, US)
    assert local_nodes.serves(500, HERE, proc)
    listen(proc, 71, THEM, "00000000:0D73")
    assert not local_nodes.serves(500, HERE, proc)


def test_listeners_are_read_from_both_tables_and_nothing_else_is(proc: Path) -> None:
    listen(proc, 70, US)
    listen(proc, 71, 0, "00000000000000000000000001000000:0D74")
    with (proc / "net" / "tcp").open("a") as table:
        table.write("   1: 0100007F:0D75 0100007F:0D73 01 0:0 0:0 0 1000 0 72 1 0\ncut off")
    assert listeners(proc) == [Listener("127.0.0.1", 3443, US, 70), Listener("::1", 3444, 0, 71)]
    assert in_the_way("0.0.0.0", 3443, proc) == [Listener("127.0.0.1", 3443, US, 70)]
    assert in_the_way("::", 3443, proc) == []


def test_a_user_that_has_no_number_here_is_not_taken_for_who_has_the_number_of_all_those(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a service with PrivateUsers= sees of others is 65534."""
    monkeypatch.setattr(processes, "PROC", proc)
    (proc / "self" / "uid_map").write_text("         0          0          1\n       998        998          1\n")
    assert processes.described_user(0) == "user root"
    assert processes.described_user(998).startswith("user ")
    assert processes.described_user(65534) == "another user"


def test_words_for_a_process_are_one_line_whatever_it_calls_itself(proc: Path) -> None:
    process(proc, 500, "a\n\x1b[31mb", users=[4321])
    assert processes.described(500, proc) == "a??[31mb, process 500 of user 4321"
    assert processes.described(501, proc) == "?, process 501"
