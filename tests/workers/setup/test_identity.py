"""Who a node is outlives it; what it needs for itself, it has for itself, or says in one line what is in the way."""

from __future__ import annotations

import json
import os
import pwd
import socket
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skywalker.config import Config
from skywalker.state_path import usual_state_path
from tests.cli.running import run
from tests.workers.running_nodes import running
from tests.workers.wire_client import WireClient
from workers.engine import sockets
from workers.ipc import exits
from workers.setup.ground import JUNCTION, Ground
from workers.setup.identity import Identity, StateDirectory, StateError


@contextmanager
def ground(**settings: Any) -> Iterator[Ground]:
    """Yield what a node has before it has processes."""
    found = Ground(Config(**{"port": 0, "workers": 1, "pubsub": False, "admin": False, **settings}))
    try:
        yield found
    finally:
        found.close()
        for listener in (each for of_worker in found.listeners for each in of_worker.values()):
            listener.close()


def refused(**settings: Any) -> str:
    """Return what is said of an address that cannot be had, in one line."""
    with pytest.raises(sockets.AddressError) as error, ground(**settings):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


# A real node.


def serve(*flags: str) -> tuple[int, str]:
    """Run a node that is expected not to start; return its status and the only line that it said."""
    ended = run("serve", "--workers=1", *flags)
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("skywalker: ")
    assert ended.stdout == b""
    return ended.returncode, line


def test_no_other_node_has_the_port_or_the_state_of_one_that_runs_and_the_next_one_has_both(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with running(workers=2, state_dir=state) as node, WireClient.open(node.address) as client:
        port = node.address[1]
        greeting = client.ask(":hello", 1, {})
        status, said = serve(f"--port={port}", f"--state-dir={tmp_path / 'second'}")
        assert status == exits.ADDRESS == 6
        assert f"127.0.0.1:{port}: Address already in use by skywalker:{port}, process {node.pid} of" in said
        assert not (tmp_path / "second").exists()
        status, said = serve("--port=0", f"--state-dir={state}")
        assert status == exits.STATE == 8
        assert f"{state} belongs to a node that runs" in said
    # Its connections stay behind in TIME_WAIT, which hinders nobody.
    with running(workers=1, port=port, state_dir=state) as successor:
        assert successor.address == node.address
        assert successor.tokens == node.tokens
        with WireClient.open(successor.address) as client:
            assert client.ask(":hello", 1, {})["node"] == greeting["node"]


# Its state.


def test_nodes_without_a_directory_are_new_each_time_and_as_many_as_one_likes() -> None:
    with ground() as one, ground() as other:
        assert one.addresses != other.addresses
        assert one.member.id != other.member.id
        assert not {*one.member.tokens} & {*other.member.tokens}


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot use the state directory"):
        StateDirectory(tmp_path / "file" / "state").open()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "\x00\x01",
        '{"id": "x"}',
        '{"id": "x", "tokens": []}',
        '{"id": "x", "tokens": [1.5]}',
        '{"id": "x", "tokens": [true]}',
        '{"id": "x", "tokens": [9223372036854775808]}',
        '{"id": 5, "tokens": [1]}',
        '{"id": "x", "tokens": {"1": 1}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_holds_no_identity_stops_the_start_with_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "node.json").write_text(content)
    with pytest.raises(StateError) as raised:
        StateDirectory(tmp_path).open()
    text = str(raised.value)
    assert text.startswith(f"cannot read {tmp_path / 'node.json'}: ")
    assert text.endswith("Remove it to give the node new tokens")
    assert "\n" not in text
    assert (tmp_path / "node.json").read_text() == content


def test_a_file_that_is_no_text_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(StateError, match="cannot read"):
        StateDirectory(tmp_path).open()


def test_what_is_kept_is_what_comes_back(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "a" / "b")
    first = directory.open()
    directory.close()
    assert uuid.UUID(first.id)
    assert first.tokens == sorted(first.tokens)
    assert json.loads((tmp_path / "a" / "b" / "node.json").read_text()) == {"id": first.id, "tokens": first.tokens}
    again = StateDirectory(tmp_path / "a" / "b")
    assert again.open() == first
    again.close()


def test_a_file_edited_by_hand_may_have_its_tokens_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text('{"tokens": [3, -1, 3], "id": "mine", "comment": "kept by nobody"}')
    directory = StateDirectory(tmp_path)
    assert directory.open() == Identity("mine", [-1, 3])
    directory.close()


def test_the_usual_place_is_told_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    for host in ("127.0.0.1", "10.0.0.1", "0.0.0.0", "localhost"):
        assert usual_state_path(host, 3443) == Path("/state/skywalker/3443")
    assert usual_state_path("127.0.0.2", 3443) == Path("/state/skywalker/127.0.0.2:3443")
    monkeypatch.setenv("STATE_DIRECTORY", "/systemd/skywalker")
    assert usual_state_path("127.0.0.1", 3443) == Path("/systemd/skywalker")
    assert usual_state_path("127.0.0.1", 0) is None


@pytest.mark.parametrize("home", ["/nonexistent", "/"])
def test_there_is_none_for_who_has_no_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    assert usual_state_path("127.0.0.1", 3443) is None


def test_there_is_none_for_a_number_that_is_no_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert usual_state_path("127.0.0.1", 3443) is None


# Its address.


def test_a_port_that_is_taken_is_said_with_who_has_it_and_nothing_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = refused(port=port, state_dir=str(tmp_path / "state"))
    assert said.startswith(f"cannot listen on 127.0.0.1:{port}: Address already in use by ")
    assert f", process {os.getpid()} of user {pwd.getpwuid(os.getuid()).pw_name}" in said
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "localhost"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_node_does_not_join_the_port_of_the_first(bind: str, workers: int) -> None:
    with ground(workers=workers) as first:
        assert "Address already in use by " in refused(bind=bind, port=first.addresses[JUNCTION][1], workers=workers)


def test_a_second_node_does_not_join_a_port_whose_owner_let_others_in() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert "Address already in use" in refused(port=server.getsockname()[1])


def test_of_a_program_that_only_binds_a_port_as_much_is_said() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        said = refused(port=other.getsockname()[1])
    assert "by a program that has bound it, and does not listen there" in said


def test_nobody_joins_a_port_that_one_worker_has_for_itself() -> None:
    with ground() as found, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="Address already in use"):
            other.bind(found.addresses[JUNCTION])


@pytest.mark.parametrize("bind", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_of_this_machine_is_named(bind: str) -> None:
    assert bind in refused(bind=bind)


def test_of_two_that_want_a_port_at_the_same_moment_one_gets_it() -> None:
    """Each round, two threads at one port: for both at once to be refused is as wrong as for both to have it."""
    both = threading.Barrier(2)

    def want(port: int) -> list[socket.socket]:
        both.wait()
        try:
            return sockets.listeners("127.0.0.1", port, 2, 1)[0]
        except sockets.AddressError:
            return []

    with ThreadPoolExecutor(2) as threads:
        for _ in range(15):
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            had = [*threads.map(want, [port, port])]
            for listener in (each for of_one in had for each in of_one):
                listener.close()
            assert sorted(map(len, had)) == [0, 2]
