"""The fan-out: every server, the real one, delivers everything; what is lost, doubled or changed is noticed."""

import os
from collections.abc import Callable, Iterator

import pytest

from bench.errors import Stalled, WrongReply
from bench.fanout import Case, Published, load_of
from bench.figures.samples import measure
from bench.load.plan import Load
from bench.servers import Running
from bench.servers.pubsub import DIALECTS
from tests.bench.works import Done, work
from tests.clients.proxy import Proxy
from tests.helpers import time_factor

FEW = Published(1, 4)

Change = Callable[[bytes], bytes]


def load_for(name: str, running: Running, load: Published, subscribers: int, patience_s: float = 5) -> Load:
    return load_of(name, running, Case(load, subscribers), patience_s * time_factor())


@pytest.fixture(scope="module", params=DIALECTS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Running]]:
    """A server that runs, by name. A missing program is an error here, which says what to install."""
    with DIALECTS[request.param].started() as running:
        yield request.param, running


@pytest.mark.parametrize(("load", "subscribers"), [(Published(1, 1), 1), (Published(6, 4, topics=2), 5)])
def test_everything_published_reaches_every_subscriber(
    served: tuple[str, Running], load: Published, subscribers: int
) -> None:
    name, running = served
    sample = measure(load_for(name, running, load, subscribers), 0.1, running.pid)
    assert sample.sent > 10
    if subscribers % load.topics == 0:
        assert sample.received == sample.sent * subscribers // load.topics
    few, many = subscribers // load.topics, -(-subscribers // load.topics)
    assert sample.sent * few <= sample.received <= sample.sent * many
    assert 0 < sample.server_cores < (os.cpu_count() or 1) + 0.5
    assert (sample.p50_us is None) == (sample.p99_us is None) == (load != Published(1, 1))


def spoiled(running: Running, name: str, change: Change, seconds: float) -> Done:
    """Work through a relay that changes what the server says."""
    with Proxy("127.0.0.1", running.port, change) as proxy:
        through = Running(running.host, proxy.port, running.pid, running.version)
        return work(load_for(name, through, FEW, 2, patience_s=0.5), seconds)


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
        spoiled(running, name, once(b"........", lambda data: data.replace(b"........", b"....!...", 1)), 10.0)


def test_a_message_that_one_subscriber_misses_ends_it(served: tuple[str, Running]) -> None:
    name, running = served
    message = DIALECTS[name].message(b"topic0", b"000.0000........")

    def cut(data: bytes) -> bytes:
        start = data.index(b"000.0")
        return data[:start] + data[start + len(message) :]

    with pytest.raises((WrongReply, Stalled)):
        spoiled(running, name, once(b"000.0", cut), 0.5)
