"""`--lines`: many values through one command, in order, and nothing lost at its ends."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable

import pytest

from skywalker.cli import exits
from skywalker.cli.stream import Stream
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node
from skywalker.errors import OutcomeUnknown, SkywalkerError, TimedOut
from tests.cli.running import end, run, started
from tests.helpers import time_factor

Waits = Callable[..., None]


def test_lines_arrive_in_their_order_and_unchanged(node: Node, topic: str) -> None:
    lines = b"".join(b"%d line \xff \xc3\xa9 {\n" % number for number in range(3_000)) + b"no newline at the end"
    with started("take", topic, "--raw", "--lines", "--count", "3001", node=node.address) as taker:
        assert run("send", topic, "--raw", "--lines", stdin=lines, node=node.address).returncode == 0
        assert taker.communicate(timeout=30 * time_factor())[0] == lines + b"\n"
        assert end(taker) == 0


def test_a_line_leaves_as_soon_as_it_was_written(node: Node, topic: str, junction: Client) -> None:
    with started("send", topic, "--lines", node=node.address) as sender:
        assert sender.stdin is not None
        for number in range(3):
            sender.stdin.write(b"%d\n" % number)
            sender.stdin.flush()
            assert junction.recv(topic, 10.0) == number
        sender.stdin.close()
        assert end(sender) == 0


def test_what_is_received_is_printed_at_once(node: Node, topic: str, junction: Client) -> None:
    with started("recv", topic, "--lines", node=node.address) as receiver:
        assert receiver.stdout is not None
        for number in range(3):
            junction.send(topic, number, 10.0)
            assert receiver.stdout.readline() == b"%d\n" % number


def test_no_more_values_than_said_are_on_their_way(node: Node, topic: str, someone_waits: Waits) -> None:
    with started("send", topic, "--lines", "--in-flight", "3", node=node.address) as sender:
        assert sender.stdin is not None
        sender.stdin.write(b"1\n" * 10)
        sender.stdin.flush()
        someone_waits(senders=3)
        got = run("recv", topic, "--lines", "--count", "10", node=node.address)
        assert got.stdout == b"1\n" * 10
        sender.stdin.close()
        assert end(sender) == 0


def test_the_first_line_that_is_not_delivered_ends_the_stream(node: Node, topic: str) -> None:
    with started("send", topic, "--lines", "--in-flight", "4", "--timeout", "300ms", node=node.address) as sender:
        assert sender.stdin is not None
        sender.stdin.write(b"1\n" * 100)
        sender.stdin.flush()  # and stays open: it must not wait for more
        assert end(sender) == 3
        assert sender.stderr is not None
        told = sender.stderr.read().decode().splitlines()
    assert told[0].startswith("skywalker: line 1: nobody came")
    assert len(told) == 2
    assert told[1].startswith("skywalker: timed-out, of lines that were on their way: 2-")


def test_of_each_line_that_was_on_its_way_it_says_what_became_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    all_began = threading.Event()

    class Sent:
        def __init__(self, error: SkywalkerError | None) -> None:
            self.error = error

        def result(self) -> None:
            assert all_began.wait(30 * time_factor())
            if self.error is not None:
                raise self.error

    def begin(error: SkywalkerError | None) -> Sent:
        if error is last:
            all_began.set()
        return Sent(error)

    last, unknown = TimedOut("nobody came"), OutcomeUnknown("somebody may have it")
    sent = [unknown, unknown, None, unknown, unknown, last]
    stream = Stream(begin, in_flight=len(sent), keep_going=False, as_json=False)
    assert stream.send(iter(sent)) == exits.UNKNOWN
    assert capfd.readouterr().err.splitlines() == [
        "skywalker: line 1: somebody may have it",
        "skywalker: unknown-outcome, of lines that were on their way: 2, 4-5",
        "skywalker: timed-out, of lines that were on their way: 6",
    ]


def test_keep_going_tries_every_line_and_the_status_is_that_of_the_first_failure(
    node: Node, topic: str, junction: Client
) -> None:
    lines = b"%b\n{bad\n1\n" % (b"x" * 70_000)
    waiting = junction.begin("recv", topic)
    ran = run("send", topic, "--lines", "--keep-going", stdin=lines, node=node.address)
    assert waiting.result() == 1
    assert ran.returncode == 5
    told = ran.stderr.decode().splitlines()
    assert [line.split(":")[1] for line in told] == [" line 1", " line 2"]


def test_each_line_has_its_result_for_scripts(node: Node, topic: str, junction: Client) -> None:
    first, second = junction.begin("recv", topic), junction.begin("recv", topic)
    sent = run("send", topic, "--lines", "--json", "--timeout", "200ms", stdin=b"1\n2\n", node=node.address)
    # One send goes to every receiver that waits.
    assert first.result() == second.result() == 1
    results = [json.loads(line) for line in sent.stdout.splitlines()]
    assert [(each["line"], each["status"]) for each in results] == [(1, "delivered"), (2, "timed-out")]
    assert sent.returncode == 3


def test_an_idle_stream_ends_with_status_3(node: Node, topic: str, junction: Client) -> None:
    call = junction.begin("send", topic, "only one")
    ran = run("recv", topic, "--lines", "--timeout", "200ms", node=node.address)
    assert call.result() is True
    assert (ran.returncode, ran.stdout) == (3, b'"only one"\n')


def test_ctrl_c_ends_a_stream_whose_input_is_still_open(node: Node, topic: str, someone_waits: Waits) -> None:
    with started("send", topic, "--lines", node=node.address) as sender:
        assert sender.stdin is not None
        sender.stdin.write(b"1\n2\n")
        sender.stdin.flush()
        someone_waits(senders=2)
        sender.send_signal(signal.SIGINT)
        assert end(sender) == 130
        assert sender.stderr is not None
        assert sender.stderr.read().strip() == b""
        someone_waits(senders=0)
