"""What watches a node while it is measured: that it watches to the end, or says why not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench import scraping
from bench.errors import BenchError
from bench.figures.samples import Samples
from bench.scraping import ALONE, FLOODED, MODES, WATCHED, Found
from tests.helpers import eventually


class Fake(ThreadingHTTPServer):
    """An admin server that answers everything, and goes on with its stream, until it `fails`."""

    fails = ""
    asked = 0
    events = 0
    failed = 0
    over: threading.Event


class Request(BaseHTTPRequestHandler):
    """What is asked of it."""

    server: Fake
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.path == "/api/events":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while self.server.fails != "the stream" and not self.server.over.wait(0.01):
                    self.server.events += 1
                    self.wfile.write(b"data: {}\n\n")
            self.server.failed += not self.server.over.is_set()
            self.close_connection = True
        elif self.server.fails == "the protocol" and self.path == "/metrics":
            self.server.failed += 1
            self.wfile.write(b"HTTP/9 nonsense\r\n\r\n")
            self.close_connection = True
        else:
            fails = self.server.fails == "the status" and self.path == "/metrics"
            self.server.failed += fails
            self.send_response(503 if fails else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake(("127.0.0.1", 0), Request)
    server.over = threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("mode", [WATCHED, FLOODED])
def test_a_node_that_answers_to_the_end_is_watched(fake: Fake, mode: str) -> None:
    with scraping._watching(f"127.0.0.1:{fake.server_port}", mode):
        eventually(lambda: fake.asked > 3 and (fake.events > 10 or mode == FLOODED))


@pytest.mark.parametrize(
    ("fails", "problem"),
    [
        ("the stream", "/api/events: it ended"),
        ("the status", "/metrics: it has the status 503"),
        ("the protocol", "/metrics: HTTP/9"),
    ],
)
def test_a_run_in_which_it_stopped_answering_does_not_count(fake: Fake, fails: str, problem: str) -> None:
    def watch() -> None:
        with scraping._watching(f"127.0.0.1:{fake.server_port}", WATCHED):
            fake.fails = fails
            eventually(lambda: fake.failed)
            asked = fake.asked
            assert fake.failed == 1
            eventually(lambda: fake.asked > asked)  # the others go on

    with pytest.raises(BenchError, match=problem):
        watch()


def test_the_table_has_the_workers_and_the_whole_node_beside_each_other() -> None:
    found = {ALONE: Found(100e3, 80e3, 0.0, 2000.0), WATCHED: Found(99e3, 76e3, 0.05, 2200.0)}
    samples: Samples[int, str] = Samples()
    for mode in MODES * 3:
        samples.add(2, mode, found.get(mode, found[WATCHED]))
    row = next(line for line in scraping.lines(samples, 3, 1.0) if WATCHED in line)
    assert row.split() == ["2", "watched", "99.0", "0.990", "76.0", "0.950", "0.050", "2.20", "1.100"]
