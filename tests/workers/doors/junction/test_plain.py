"""Who never says :hello takes every error for a value, as the clients of the published dialects do, and hears none."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skywalker.access.access import Access
from skywalker.limits import Limits
from tests.helpers import eventually
from tests.simulation.stage import stage
from tests.workers.one_worker import OneWorker
from tests.workers.operated import node
from tests.workers.reloads import begin_reload
from tests.workers.wire_client import (
    ERROR_TYPE,
    TIMED_OUT,
    Address,
    ConnectionEnded,
    WireClient,
    call,
    code_of,
    packed,
    raw_call,
    refusal,
)
from workers.ipc import exits
from workers.stats.metrics import REFUSED

LONG_MS = 60_000
RELOADS = 3
PAIRS = 5


class Plain:
    """It makes a call again when it is cut off, over a new connection."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._wire: WireClient | None = None
        self.dialled = 0  # how often

    def answer(self, method: str, *arguments: object) -> Iterator[Any]:
        """Yield None until the call has its result, and then that."""
        asked = False
        while True:
            try:
                if self._wire is None:
                    self._wire, asked = WireClient.open(self._address), False
                    self.dialled += 1
                if not asked:
                    self._wire.call(method, self.dialled, LONG_MS, *arguments)
                    asked = True
                if self._wire.has_input():
                    answered, id, result = self._wire.reply()
                    assert (answered, id) == (method, self.dialled)
                    yield result
                    return
            except (ConnectionEnded, ConnectionError):
                if self._wire is not None:
                    self._wire.close()
                self._wire = None
            yield None


class Pairs:
    """Plain clients that hand numbers to each other, pair by pair."""

    def __init__(self, address: Address) -> None:
        self.clients = [Plain(address) for _ in range(2 * PAIRS)]
        self.sent: list[list[int]] = [[] for _ in range(PAIRS)]
        self.received: list[list[int]] = [[] for _ in range(PAIRS)]
        self._goes_on = True
        self._work = [
            work(self.clients[PAIRS * which + pair], pair)
            for which, work in enumerate((self._send, self._receive))
            for pair in range(PAIRS)
        ]

    def _send(self, client: Plain, pair: int) -> Iterator[None]:
        while self._goes_on:
            value = len(self.sent[pair])
            for result in client.answer(":send!", f"pair-{pair}", value):
                assert result in (None, True)
                yield
            self.sent[pair].append(value)

    def _receive(self, client: Plain, pair: int) -> Iterator[None]:
        while True:
            for result in client.answer(":recv!", f"pair-{pair}"):
                if result is not None:
                    self.received[pair].append(result)
                yield

    def go_on(self) -> bool:
        """Have each do something; return whether that is possible."""
        for each in self._work:
            next(each, None)
        return True

    def meet_while(self, check: Callable[[], bool]) -> None:
        """Go on while something is so, and until each pair has met again after that."""
        while check():
            self.go_on()
        before = [len(each) for each in self.received]
        eventually(
            lambda: self.go_on() and all(len(now) > then for now, then in zip(self.received, before, strict=True)), 20.0
        )

    def assert_nothing_is_lost_or_doubled(self) -> None:
        """Have the last be handed on."""
        self._goes_on = False
        eventually(lambda: self.go_on() and self.received == self.sent)


def test_reloads_lose_nothing_double_nothing_and_are_no_value_to_anybody() -> None:
    with node(workers=2, drain_timeout_s=1) as running:
        pairs = Pairs(running.node.address)
        for _ in range(RELOADS):
            begin_reload(running)
            pairs.meet_while(lambda: running.node.reloads)
        pairs.assert_nothing_is_lost_or_doubled()
        assert all(client.dialled > 1 for client in pairs.clients)


def test_nor_do_nodes_that_end_and_begin_again() -> None:
    with stage() as on:
        host = on.host()
        with node(workers=2, drain_timeout_s=1, host=host) as running:
            pairs = Pairs(running.node.address)
            pairs.meet_while(lambda: False)
            running.signal(signal.SIGTERM)
            eventually(lambda: pairs.go_on() and running.is_gone(running.pid))
        with node(workers=2, drain_timeout_s=1, host=host):
            pairs.meet_while(lambda: False)
            pairs.assert_nothing_is_lost_or_doubled()


@pytest.mark.parametrize("drain_timeout_s", [0, 0.5])
def test_calls_that_still_wait_when_the_time_is_over_are_cut_off_without_a_word(drain_timeout_s: float) -> None:
    with node(workers=2, drain_timeout_s=drain_timeout_s) as running, contextlib.ExitStack() as stack:
        guide = running.connect_to(0)
        clients = [stack.enter_context(WireClient.open(running.node.address)) for _ in range(20)]
        topics = [guide.topic_owned_by(slot) for slot in (0, 1)]
        for number, client in enumerate(clients):
            client.call(":recv!", 1, LONG_MS, topics[number % 2])
            client.call(":send!", 2, LONG_MS, f"{topics[0]}-{number}", "value")
            client.call(":take!", 3, LONG_MS, f"{topics[1]}-{number}", "group")
        for topic in topics:
            guide.wait_until(topic, receivers=10)
        running.signal(signal.SIGTERM)
        for client in clients:
            client.wait_for_end(10.0)
        assert running.wait(within=10.0) == exits.OK


@contextlib.contextmanager
def replaced() -> Iterator[tuple[WireClient, WireClient]]:
    """Yield a plain client with a receive that waits, whose worker is being replaced, and one of the successor."""
    with (
        node(workers=1, drain_timeout_s=60) as running,
        running.connect() as other,
        WireClient.open(running.node.address) as client,
    ):
        client.call(":recv!", "waits", LONG_MS, "topic")
        other.wait_until("topic", receivers=1)
        other.answer(":hello", {})
        begin_reload(running)
        eventually(lambda: code_of(other.answer, ":recv!", 0, "other") == "draining")
        with running.connect() as late:
            yield client, late


def test_calls_that_come_while_others_wait_are_served_and_the_last_answer_is_the_end() -> None:
    with replaced() as (client, other):
        assert client.ask(":recv!", 1, 0, "nobody") == TIMED_OUT
        receive = other.begin(":recv!", LONG_MS, "new")
        assert client.ask(":send!", 2, 5_000, "new", "value") is True
        assert other.result(receive) == "value"
        assert isinstance(client.ask(":tokens", 3), list)
        assert other.answer(":send!", 5_000, "topic", "last") is True
        assert client.reply() == [":recv!", "waits", "last"]
        client.wait_for_end()


def test_what_is_called_as_it_is_closed_is_not_done() -> None:
    with replaced() as (client, other):
        assert other.answer(":send!", 5_000, "topic", "last") is True
        assert client.reply() == [":recv!", "waits", "last"]
        client.call(":send!", 1, LONG_MS, "again", "value")
        client.wait_for_end()
        assert other.answer(":recv!", 200, "again") == TIMED_OUT


def test_who_has_said_nothing_yet_may_still_say_hello() -> None:
    with node(workers=1, drain_timeout_s=60) as running, contextlib.ExitStack() as stack:
        silent, plain = [stack.enter_context(WireClient.open(running.node.address)) for _ in range(2)]
        assert isinstance(plain.ask(":tokens", 1), list)
        begin_reload(running)
        plain.wait_for_end()  # it asked something, and nothing of that waits
        silent.ask(":hello", 1, {})
        silent.call(":recv!", 2, 0, "other")
        refusal = silent.refusal()
        assert refusal.code == "draining"
        assert refusal.message.endswith("make the call again over a new connection")


# Values.


def test_a_value_that_is_too_long_for_it_is_its_senders_error_and_it_waits_on() -> None:
    longest = 16_384
    with (
        node(max_plain_reply=longest) as running,
        running.connect_to(0) as sender,
        WireClient.open(running.node.address) as plain,
        running.connect() as greeted,
    ):
        for slot in range(2):
            topic = sender.topic_owned_by(slot)
            plain.call(":recv!", 1, LONG_MS, topic)
            sender.wait_until(topic, receivers=1)
            for size in (longest, 65_000, longest - 8 - 1 - 3 + 1):
                assert code_of(sender.answer, ":send!", 5_000, topic, b"x" * size) == "too-large"
                sender.wait_until(topic, receivers=1, senders=0)
            receive = greeted.begin(":recv!", LONG_MS, topic)
            sender.wait_until(topic, receivers=2)
            assert sender.answer(":send!", 5_000, topic, b"x" * longest) is True
            assert greeted.result(receive) == b"x" * longest
            sender.wait_until(topic, receivers=1)
            fits = b"x" * (longest - 8 - 1 - 3)
            assert sender.answer(":send!", 5_000, topic, fits) is True
            frame = plain.read_frame()
            assert len(frame) == 2 + longest
            assert frame.endswith(fits)


RESERVED = [
    (bytes((head,)) + size + bytes((code,)) + data).hex()
    for code in (0x45, 0x54)
    for head, size, data in (
        (0xD4, b"", b"\0"),
        (0xD8, b"", bytes(16)),
        (0xC7, b"\1", b"\0"),
        (0xC7, b"\0", b""),
        (0xC8, b"\0\3", b"abc"),
        (0xC9, b"\0\0\0\1", b"\0"),
    )
]


def test_values_that_look_like_answers_of_the_node_are_refused() -> None:
    with contextlib.closing(OneWorker()) as worker, worker.connect() as client:
        for value in map(bytes.fromhex, RESERVED):
            for names in ([], [b"\xc0"]):
                client.write(raw_call(packed(":send!"), b"\1", b"\0", *names, packed("topic"), value))
                worker.turn()
                assert client.refusal().code == "reserved-value"


# Other errors.


def connected(worker: OneWorker) -> WireClient:
    """Return a new client, which has not said :hello."""
    return WireClient.open((worker.member.address.host, worker.member.address.port))


CLOSED = "closed"

LIMITS = {"busy": Limits(waiting_bytes=1), "too-large": Limits(max_plain_reply=64)}
ACCESS = {
    "forbidden": {"anyone": {"recv": ["other"], "send": ["other"]}},
    "unauthorized": {"web": {"user": "root", "send": ["*"]}},
}
ROOM_MS = 50

Frame = tuple[Any, ...]

RECV: Frame = (":recv!", 1, ROOM_MS, "topic")
SEND: Frame = (":send!", 1, ROOM_MS, "topic", "value")

UNHEARD: list[tuple[str, Frame]] = [
    ("busy", RECV),
    ("busy", SEND),
    ("bad-topic", (":recv!", 1, ROOM_MS, "t" * 5_000)),
    ("bad-topic", (":send!", 1, ROOM_MS, "t" * 5_000, "value")),
    ("forbidden", RECV),
    ("forbidden", SEND),
    ("unauthorized", RECV),
    ("unauthorized", SEND),
    ("reserved-value", (":send!", 1, ROOM_MS, "topic", TIMED_OUT)),
]
"""Errors of which a plain client hears that its time is over."""


def worker_for(code: str) -> OneWorker:
    """Return a worker at which calls end with this error, if it takes more than the call."""
    access = Access.parse(ACCESS[code], "access") if code in ACCESS else None
    return OneWorker(LIMITS.get(code), access=access)


def outcome(worker: OneWorker, frame: bytes, *, hello: bool) -> Any:
    """Return what a new client hears to a frame: the code of an error, another result, or that it is closed."""
    with connected(worker) as client:
        if hello:
            client.call(":hello", 0, {})
        client.write(frame)
        worker.turn()
        worker.turn(later=2 * ROOM_MS / 1000)
        try:
            answers = [client.reply() for _ in range(1 + hello)]
        except ConnectionEnded as end:
            return end.rest or CLOSED
        result = answers[-1][2]
        return refusal(answers[-1]).code if getattr(result, "code", 0) == ERROR_TYPE else result


def with_name(frame: Frame) -> Frame:
    """Return a call in the first dialect."""
    return (*frame[:3], "over", *frame[3:])


@pytest.mark.parametrize("first", [False, True], ids=["current", "first"])
@pytest.mark.parametrize(("code", "frame"), UNHEARD, ids=[f"{code}-{frame[0][1:5]}" for code, frame in UNHEARD])
def test_what_the_original_would_not_have_refused_is_a_timeout_to_it_and_told_in_the_log(
    code: str, frame: Frame, first: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(worker_for(code)) as worker:
        said = call(*(with_name(frame) if first else frame))
        if code != "unauthorized":  # a :hello of a stranger is refused as well
            assert outcome(worker, said, hello=True) == code
        capfd.readouterr()
        before = worker.counted(REFUSED).get(code, 0)
        worker.hub.admission.refusals._said_at = 0.0
        assert outcome(worker, said, hello=False) == ("over" if first else TIMED_OUT)
        assert worker.counted(REFUSED)[code] == before + 1
        assert f"code={code}" in capfd.readouterr().err


HEARD = {
    "bad-timeout": [call(":recv!", 1, "soon", "topic"), call(":send!", 1, None, "topic", "value")],
    "bad-arity": [call(":recv!", 1, 0), call(":send!", 1, 0, "topic", "value", 1, 2), call(":tokens", 1, 2)],
    "unknown-method": [call(":nothing", 1)],
    "bad-frame": [b"\0\1\xc1", b"\0\2\x90\x90"],
    "bad-topic": [call(":take!", 1, 0, "t" * 5_000, "group")],
    "bad-id": [call(":take!", "i" * 40, 0, "topic", "group")],
}
"""What the original would have failed at, too."""

CUT_OFF = {
    "bad-id": [
        call(":recv!", "i" * 40, 0, "topic"),
        call(":send!", "i" * 40, 0, "topic", "value"),
        call(":tokens", "i" * 40),
    ],
    "bad-frame": [
        raw_call(packed(":send!"), b"\1", b"\0", packed("topic"), b"\x91" * 600 + b"\1"),
        raw_call(packed(":recv!"), b"\1", b"\0", packed("topic") + b"\1"),
    ],
    "unauthorized": [call(":tokens", 1)],
}
"""Errors in place of which no timeout can be told."""


@pytest.mark.parametrize("code", HEARD)
def test_what_the_original_would_have_failed_at_too_is_an_error(code: str) -> None:
    for frame in HEARD[code]:
        with contextlib.closing(OneWorker()) as worker:
            assert outcome(worker, frame, hello=False) == outcome(worker, frame, hello=True) == code


@pytest.mark.parametrize("code", CUT_OFF)
def test_where_no_timeout_can_be_told_it_is_closed_without_a_word(code: str) -> None:
    for frame in CUT_OFF[code]:
        with contextlib.closing(worker_for(code)) as worker:
            if code != "unauthorized":
                assert outcome(worker, frame, hello=True) == code
            before = worker.counted(REFUSED).get(code, 0)
            assert outcome(worker, frame, hello=False) == CLOSED
            assert worker.counted(REFUSED)[code] == before + 1


def test_a_value_that_is_too_long_for_who_listens_is_a_timeout_to_a_plain_sender() -> None:
    with (
        contextlib.closing(worker_for("too-large")) as worker,
        connected(worker) as listener,
        connected(worker) as sender,
    ):
        listener.call(":recv!", 1, LONG_MS, "topic")
        worker.turn()
        sender.call(":send!", 1, LONG_MS, "topic", "x" * 100)
        worker.turn()
        assert sender.reply() == [":send!", 1, TIMED_OUT]
        sender.call(":send!", 2, LONG_MS, "topic", "fits")
        worker.turn()
        assert [sender.reply(), listener.reply()] == [[":send!", 2, True], [":recv!", 1, "fits"]]
