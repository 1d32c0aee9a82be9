"""What waits for a slow peer, against a list: bytes in their order, and what became of the values among them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skywalker.limits import KIB
from workers.calls.call import Caller, ClientCall, client_call
from workers.doors.write_buffer import WriteBuffer

JOINED_BYTES = 16 * KIB
WRITE_BYTES = 256 * KIB
"""Compiled, the module keeps its own to itself."""


class Gone(Caller):
    """A caller whose calls run no clocks."""

    def __init__(self) -> None:
        self.gone = True  # so that it asks for no way of its calls, which it has none of

    def take_back(self, listener: ClientCall, told: bool) -> bool:
        return False  # whoever drains the backlog sees to it


def listener_given(chunk: bytes) -> ClientCall:
    """Return a listener that was given a value of its own, which its reply holds."""
    send = client_call(Gone(), b"", b"", b"\xa1t", 0.0, 0.0, b"\x01", None)
    listener = client_call(Gone(), b"", b"", b"\xa1t", 0.0, 0.0, None, None)
    listener.chunk = chunk
    listener.given = send
    return listener


@dataclasses.dataclass
class Item:
    """A chunk, and how much of it is written."""

    chunk: bytes
    listener: ClientCall | None
    written: int = 0


class Model:
    """A backlog, and the list that it is to be."""

    def __init__(self) -> None:
        self.backlog = WriteBuffer()
        self.items: list[Item] = []

    def add(self, chunk: bytes) -> None:
        self.backlog.add(chunk)
        self.items.append(Item(chunk, None))

    def add_value(self, chunk: bytes) -> None:
        listener = listener_given(chunk)
        self.backlog.add_value(listener)
        self.items.append(Item(chunk, listener))

    def abandon(self, which: int) -> None:
        values = [item.listener for item in self.items if item.listener is not None]
        if values:
            values[which % len(values)].sender().abandon()

    def unwritten(self) -> bytes:
        return b"".join(item.chunk[item.written :] for item in self.items)

    def withdraw(self) -> None:
        expected = [
            item.listener
            for item in self.items
            if item.listener is not None and not item.written and item.listener.sender().abandoned
        ]
        assert self.backlog.withdraw() == expected
        self.items = [item for item in self.items if item.listener is None or item.listener not in expected]

    def write(self, limit: int) -> None:
        batch = self.backlog.batch()
        unwritten = self.unwritten()
        assert unwritten.startswith(batch)
        assert len(batch) >= min(len(unwritten), WRITE_BYTES)
        sent = left = min(limit, len(batch))
        done = []
        while self.items and left >= len(self.items[0].chunk) - self.items[0].written:
            item = self.items.pop(0)
            left -= len(item.chunk) - item.written
            if item.listener is not None:
                done.append(item.listener)
        if left:
            self.items[0].written += left
        assert self.backlog.written(sent) == done

    def check(self) -> None:
        assert self.backlog.size == len(self.unwritten())
        assert self.backlog.listeners() == [item.listener for item in self.items if item.listener is not None]


chunks = st.binary(min_size=1, max_size=8) | st.sampled_from([b"x" * JOINED_BYTES, b"y" * (JOINED_BYTES - 1)])
steps = st.one_of(
    st.tuples(st.just("add"), chunks),
    st.tuples(st.just("add_value"), chunks),
    st.tuples(st.just("abandon"), st.integers(0, 9)),
    st.tuples(st.just("withdraw")),
    st.tuples(st.just("write"), st.integers(0, 12) | st.just(1 << 30)),
)


@given(st.lists(steps, max_size=40))
@settings(max_examples=100)
def test_whatever_is_added_written_and_taken_back_it_is_a_list(taken: list[tuple[str, ...]]) -> None:
    model = Model()
    for name, *arguments in taken:
        getattr(model, name)(*arguments)
        model.check()
    model.write(1 << 30)
    model.check()


def test_a_value_that_is_begun_is_not_taken_back() -> None:
    for written, taken_back in ((0, 2), (1, 1), (3, 1), (4, 1), (5, 0)):
        model = Model()
        for chunk in (b"aaaa", b"bbbb"):
            model.add_value(chunk)
            model.abandon(len(model.items) - 1)
        model.write(written)
        begun = [model.backlog.has_begun(item.listener) for item in model.items if item.listener is not None]
        assert begun == [item.written > 0 for item in model.items]
        left = len(model.items)
        model.withdraw()
        assert left - len(model.items) == taken_back


@pytest.mark.timeout(30)
def test_what_is_written_at_once_is_bounded_and_a_million_small_chunks_cost_no_more_than_their_bytes() -> None:
    backlog = WriteBuffer()
    count = 1_600_000
    for _ in range(count):
        backlog.add(b"12345")
    assert backlog.size == 5 * count
    got = 0
    while backlog.size:
        backlog.withdraw()
        batch = backlog.batch()
        assert len(batch) <= WRITE_BYTES + 2 * JOINED_BYTES
        sent = min(4096, len(batch))
        backlog.written(sent)
        got += sent
    assert got == 5 * count
