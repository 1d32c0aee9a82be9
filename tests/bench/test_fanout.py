"""The fan-out: every server, the real one, delivers everything; what is lost, doubled or changed is noticed."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from bench.errors import Stalled, WrongReply
from bench.fanout import WANTED, Case, Published, Report, load_of
from bench.figures.samples import Sample, measure
from bench.load.plan import Load
from bench.load.publications import Refrain, Stream
from bench.servers import Running
from bench.servers.pubsub import DIALECTS, NATS, REDIS
from tests.bench.relay import Change, relaying
from tests.bench.works import Done, work
from tests.helpers import time_factor
from workers.engine.transport import PlainSocket

FEW = Published(1, 4)
PAGE = "# ours\n\n<!-- begin fanout -->\nold\n<!-- end fanout -->\n\nmore\n"


def load_for(name: str, running: Running, load: Published, subscribers: int, patience_s: float = 5) -> Load:
    return load_of(name, running, Case(load, subscribers), patience_s * time_factor())


@pytest.fixture(scope="module", params=DIALECTS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Running]]:
    """A server that runs, by name. A missing program is an error here, which says what to install."""
    with DIALECTS[request.param].started() as running:
        yield request.param, running


@pytest.fixture(scope="module")
def redis() -> Iterator[Running]:
    with REDIS.started() as running:
        yield running


@pytest.mark.parametrize(("load", "subscribers"), [(Published(1, 1), 1), (Published(6, 4, topics=2), 5)])
def test_everything_published_reaches_every_subscriber(
    served: tuple[str, Running], load: Published, subscribers: int
) -> None:
    name, running = served
    sample = measure(load_for(name, running, load, subscribers), 0.1 * time_factor(), running.pid)
    assert sample.sent > 10
    if subscribers % load.topics == 0:
        assert sample.received == sample.sent * subscribers // load.topics
    few, many = subscribers // load.topics, -(-subscribers // load.topics)
    assert sample.sent * few <= sample.received <= sample.sent * many
    assert 0 < sample.server_cores < (os.cpu_count() or 1) + 0.5
    assert (sample.p50_us is None) == (sample.p99_us is None) == (load != Published(1, 1))


def spoiled(running: Running, name: str, change: Change, load: Published = FEW, subscribers: int = 2) -> Done:
    """Work through a relay that changes what the server says."""
    with relaying(running.port, change) as port:
        through = Running(running.host, port, running.pid, running.version)
        return work(load_for(name, through, load, subscribers, patience_s=0.5), 0.1)


def once(found: bytes, change: Callable[[bytes], bytes], after: int = 20) -> Change:
    """Return a change of one read with `found` in it, when it was seen often."""
    seen = 0

    def apply(data: bytes) -> bytes:
        nonlocal seen
        if found not in data or seen > after:
            return data
        seen += 1
        return change(data) if seen > after else data

    return apply


def test_a_payload_with_one_wrong_byte_ends_it(served: tuple[str, Running]) -> None:
    name, running = served
    with pytest.raises(WrongReply, match="came where a correct server says"):
        spoiled(running, name, once(b"........", lambda data: data.replace(b"........", b"....!...", 1)))


def test_a_message_that_one_subscriber_misses_ends_it(served: tuple[str, Running]) -> None:
    name, running = served
    message = DIALECTS[name].message(b"topic0", b"000.0000........")

    def cut(data: bytes) -> bytes:
        start = data.index(b"000.0")
        return data[:start] + data[start + len(message) :]

    with pytest.raises((WrongReply, Stalled)):
        spoiled(running, name, once(b"000.0", cut))


def test_an_ack_that_does_not_come_ends_it_and_so_does_one_too_many(redis: Running) -> None:
    with pytest.raises(Stalled, match="acknowledgements"):
        spoiled(redis, "redis", once(b":2\r\n", lambda data: data.replace(b":2\r\n", b"", 1)))
    with pytest.raises(WrongReply, match="acknowledged"):
        spoiled(redis, "redis", once(b":2\r\n", lambda data: data.replace(b":2\r\n", b":2\r\n" * 2, 1)))


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 1000])
def test_what_is_heard_does_not_depend_on_how_it_was_cut(step: int) -> None:
    messages = [NATS.message(b"topic0", b"%08d" % number) for number in range(5)]
    heard = b"".join(b"PING\r\n" * (number % 3) + messages[number % 5] for number in range(23)) + b"PING\r\n"
    ours, theirs = socket.socketpair()
    with ours, theirs, select.epoll() as epoll:
        stream = Stream(PlainSocket(ours), Refrain(messages), NATS, epoll)
        for start in range(0, len(heard), step):
            theirs.sendall(heard[start : start + step])
            stream.ready()
        assert stream.count == 23
        assert not stream.heard_more_than(23)
        assert theirs.recv(1000) == b"PONG\r\n" * heard.count(b"PING\r\n")
        theirs.sendall(b"PIN")
        stream.ready()
        assert stream.heard_more_than(23), "the beginning of a ping, or of something else, is left over"
        theirs.sendall(b"K")
        with pytest.raises(WrongReply):
            stream.ready()


def run(*options: str) -> str:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.fanout", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        output, errors = process.communicate(timeout=100 * time_factor())
    assert process.returncode == 0, errors
    assert errors == ""
    assert [each for each in psutil.process_iter() if session_of(each) == process.pid] == []
    return output


def session_of(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return 0


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], str]:
    """What a short comparison printed, its JSON, and the page that it was put into."""
    folder = tmp_path_factory.mktemp("fanout")
    (folder / "page.md").write_text(PAGE)
    options = ["--load=1x1", "--load=8x64-topics", "--subscribers=1", "--subscribers=10"]
    output = run(
        "--runs=1",
        f"--seconds={0.1 * time_factor():g}",
        *options,
        f"--json={folder}/all.json",
        f"--markdown={folder}/page.md",
    )
    return output, json.loads((folder / "all.json").read_text()), (folder / "page.md").read_text()


def test_every_server_is_measured_in_every_case_that_can_be(ran: tuple[str, dict[str, Any], str]) -> None:
    cases = ran[1]["cases"]
    seen = {(case["server"], case["publishers"], case["topics"], case["subscribers"]) for case in cases}
    assert seen == {(server, *case) for server in DIALECTS for case in [(1, 1, 1), (1, 1, 10), (8, 8, 10)]}
    assert len(cases) == len(seen)


def test_the_page_has_the_tables_and_keeps_the_rest(ran: tuple[str, dict[str, Any], str]) -> None:
    _, data, page = ran
    assert page.startswith("# ours\n\n<!-- begin fanout -->\n|")
    assert page.endswith("<!-- end fanout -->\n\nmore\n")
    assert "old" not in page
    for table in page.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1
    for name in DIALECTS:
        assert f"| {data['settings'][name]} |" in page


def tally(delivered: int, cpu: float, p50: float | None = None) -> Sample:
    return Sample(1.0, delivered, delivered, delivered, delivered, cpu, 1.0, p50, p50)


@pytest.mark.parametrize(("cpu", "cell"), [(0.5 / WANTED, f"| {WANTED:.2f} |"), (2.0, "| **0.25** |")])
def test_a_target_is_judged_by_cost_and_not_by_speed(cpu: float, cell: str) -> None:
    report = Report({"redis": "R", "skywalker": "S", "method": "m", "machine": "m"}, ["redis", "skywalker"])
    case = Case(Published(1, 64), 10)
    for delivered in (900, 1000, 5000):
        report.add(case, "redis", tally(delivered, 0.5))
        report.add(case, "skywalker", tally(delivered, cpu))
    assert report.median(case, "redis", "rate") == 1000
    assert any(line.endswith(cell) for line in report.markdown())
    reached = 0 if "**" in cell else 1
    assert f"skywalker per core-second: {reached} of 1 cases" in list(report.lines())[-1]
