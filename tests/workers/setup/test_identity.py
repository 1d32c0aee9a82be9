"""Who a node is outlives it; what it needs for itself, it has for itself, or says in one line what is in the way."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skywalker.state_path import usual_state_path
from tests.helpers import time_factor
from tests.workers.running_nodes import Node, running
from tests.workers.wire_client import WireClient
from workers.engine import sockets
from workers.ipc import exits
from workers.setup.identity import Identity, StateDirectory, StateError


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run a node that is expected not to start."""
    return subprocess.run(
        [sys.executable, "-m", "workers", "--workers=1", "--open", *flags],
        capture_output=True,
        text=True,
        timeout=20 * time_factor(),
        check=False,
    )


def greeting(node: Node) -> dict[str, object]:
    with WireClient.open(node.address) as client:
        answer: dict[str, object] = client.ask(":hello", 1, {})
    return answer


def one_line(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the only line that a node said before it ended."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("skywalker: ")
    assert ended.stdout == ""
    return line


class TestAcrossRestarts:
    def test_id_and_tokens_stay_the_same_with_any_number_of_workers(self, tmp_path: Path) -> None:
        seen = []
        for workers in (1, 3, 2):
            with running(workers=workers, state_dir=str(tmp_path / "state")) as node:
                seen.append((greeting(node)["node"], node.tokens))
        assert seen[0] == seen[1] == seen[2]
        assert len(seen[0][1]) == 32

    def test_two_nodes_have_nothing_in_common(self, tmp_path: Path) -> None:
        with running(state_dir=str(tmp_path / "a")) as one, running(state_dir=str(tmp_path / "b")) as other:
            assert greeting(one)["node"] != greeting(other)["node"]
            assert not set(one.tokens) & set(other.tokens)

    def test_nodes_without_a_directory_are_new_each_time_and_as_many_as_one_likes(self) -> None:
        with running() as one, running() as other:
            assert one.address != other.address
            assert greeting(one)["node"] != greeting(other)["node"]


class TestStateDirectory:
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
    def test_a_file_that_holds_no_identity_stops_the_start_with_one_line(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "node.json").write_text(content)
        with pytest.raises(StateError) as raised:
            StateDirectory(tmp_path).open()
        text = str(raised.value)
        assert text.startswith(f"cannot read {tmp_path / 'node.json'}: ")
        assert text.endswith("Remove it to give the node new tokens")
        assert "\n" not in text
        assert (tmp_path / "node.json").read_text() == content

    def test_a_file_that_is_no_text_stops_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "node.json").write_bytes(b"\xff\xfe\x80")
        with pytest.raises(StateError, match="cannot read"):
            StateDirectory(tmp_path).open()

    def test_a_node_says_so_and_ends_with_its_own_status(self, tmp_path: Path) -> None:
        (tmp_path / "node.json").write_text("{}")
        ended = serve("--port=0", f"--state-dir={tmp_path}")
        assert ended.returncode == exits.STATE == 8
        assert "cannot read" in one_line(ended)

    def test_a_second_node_may_not_use_it(self, tmp_path: Path) -> None:
        with running(state_dir=str(tmp_path)) as node:
            ended = serve("--port=0", f"--state-dir={tmp_path}")
            assert ended.returncode == exits.STATE
            assert f"{tmp_path} belongs to a node that runs" in one_line(ended)
            assert greeting(node)["node"]
        with running(state_dir=str(tmp_path)) as successor:
            assert successor.tokens == node.tokens

    def test_a_directory_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        ended = serve("--port=0", f"--state-dir={tmp_path}/file/state")
        assert ended.returncode == exits.STATE
        assert "cannot use the state directory" in one_line(ended)

    def test_what_is_kept_is_what_comes_back(self, tmp_path: Path) -> None:
        directory = StateDirectory(tmp_path / "a" / "b")
        first = directory.open()
        directory.close()
        assert uuid.UUID(first.id)
        assert first.tokens == sorted(first.tokens)
        assert json.loads((tmp_path / "a" / "b" / "node.json").read_text()) == {"id": first.id, "tokens": first.tokens}
        again = StateDirectory(tmp_path / "a" / "b")
        assert again.open() == first
        again.close()

    def test_a_file_edited_by_hand_may_have_its_tokens_in_any_order(self, tmp_path: Path) -> None:
        (tmp_path / "node.json").write_text('{"tokens": [3, -1, 3], "id": "mine", "comment": "kept by nobody"}')
        directory = StateDirectory(tmp_path)
        assert directory.open() == Identity("mine", [-1, 3])
        directory.close()

    def test_it_is_nobody_elses_to_read(self, tmp_path: Path) -> None:
        directory = StateDirectory(tmp_path / "state")
        directory.open()
        directory.close()
        assert (tmp_path / "state").stat().st_mode & 0o077 == 0

    def test_the_usual_place_is_told_by_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("STATE_DIRECTORY", raising=False)
        monkeypatch.setenv("XDG_STATE_HOME", "/state")
        for host in ("127.0.0.1", "10.0.0.1", "0.0.0.0", "localhost"):
            assert usual_state_path(host, 3443) == Path("/state/skywalker/3443")
        assert usual_state_path("127.0.0.2", 3443) == Path("/state/skywalker/127.0.0.2:3443")
        monkeypatch.setenv("STATE_DIRECTORY", "/systemd/skywalker")
        assert usual_state_path("127.0.0.1", 3443) == Path("/systemd/skywalker")
        assert usual_state_path("127.0.0.1", 0) is None

    @pytest.mark.parametrize("home", ["/nonexistent", "/"])
    def test_there_is_none_for_who_has_no_home(self, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("STATE_DIRECTORY", raising=False)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setenv("HOME", home)
        assert usual_state_path("127.0.0.1", 3443) is None


class TestAddress:
    @pytest.fixture
    def port(self) -> Iterator[int]:
        """A port that another program's server has."""
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            yield server.getsockname()[1]

    def test_a_port_that_is_taken_is_said_in_one_line(self, port: int, tmp_path: Path) -> None:
        ended = serve(f"--port={port}", f"--state-dir={tmp_path}")
        assert ended.returncode == exits.ADDRESS == 6
        said = one_line(ended)
        assert said.startswith(f"skywalker: cannot listen on 127.0.0.1:{port}: Address already in use by ")
        assert f", process {os.getpid()} of user {pwd.getpwuid(os.getuid()).pw_name}" in said
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "localhost"])
    def test_a_second_node_does_not_join_the_port_of_the_first(self, tmp_path: Path, bind: str) -> None:
        with running(workers=2, state_dir=str(tmp_path / "first")) as node:
            ended = serve(f"--bind={bind}", f"--port={node.address[1]}", f"--state-dir={tmp_path / 'second'}")
            assert ended.returncode == exits.ADDRESS
            assert f"Address already in use by skywalker:{node.address[1]}, process {node.pid} of" in one_line(ended)
            assert greeting(node)["workers"] == 2

    def test_a_second_node_does_not_join_a_port_whose_owner_let_others_in(self, tmp_path: Path) -> None:
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind(("127.0.0.1", 0))
            server.listen()
            ended = serve(f"--port={server.getsockname()[1]}", f"--state-dir={tmp_path}")
        assert ended.returncode == exits.ADDRESS

    def test_of_a_program_that_only_binds_a_port_as_much_is_said(self, tmp_path: Path) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            ended = serve(f"--port={other.getsockname()[1]}", f"--state-dir={tmp_path}")
        assert "by a program that has bound it, and does not listen there" in one_line(ended)

    def test_nobody_joins_a_port_that_one_worker_has_for_itself(self) -> None:
        with running(workers=1) as node, socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="Address already in use"):
                other.bind(node.address)

    def test_of_two_that_want_a_port_at_the_same_moment_one_gets_it(self) -> None:
        """Each round, two threads at one port: for both at once to be refused is as wrong as for both to have it."""
        both = threading.Barrier(2)

        def want(port: int) -> list[socket.socket]:
            both.wait()
            try:
                return sockets.listeners("127.0.0.1", port, 2, 1)[0]
            except sockets.AddressError:
                return []

        with ThreadPoolExecutor(2) as threads:
            for _ in range(100):
                with socket.create_server(("127.0.0.1", 0)) as probe:
                    port = probe.getsockname()[1]
                had = [*threads.map(want, [port, port])]
                for listener in (each for of_one in had for each in of_one):
                    listener.close()
                assert sorted(map(len, had)) == [0, 2]

    def test_the_port_is_free_again_as_soon_as_the_node_has_ended(self, tmp_path: Path) -> None:
        with running(state_dir=str(tmp_path)) as node, WireClient.open(node.address) as client:
            # Its connections stay behind in TIME_WAIT, which hinders nobody.
            assert client.ask(":ping", 1) is True
        with running(port=node.address[1], state_dir=str(tmp_path)) as successor:
            assert successor.address == node.address
            assert successor.tokens == node.tokens

    @pytest.mark.parametrize("bind", ["192.0.2.1", "no.such.host.invalid"])
    def test_an_address_that_is_not_of_this_machine_is_said_in_one_line(self, tmp_path: Path, bind: str) -> None:
        ended = serve(f"--bind={bind}", "--port=0", f"--state-dir={tmp_path}")
        assert ended.returncode == exits.ADDRESS
        assert bind in one_line(ended)

    def test_a_wrong_setting_is_said_before_anything_is_touched(self, tmp_path: Path) -> None:
        ended = serve("--port=70000", f"--state-dir={tmp_path / 'state'}")
        assert ended.returncode == exits.USAGE == 2
        assert "--port" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "state").exists()
