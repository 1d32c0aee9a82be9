"""The calls that a real program makes by our client library, as a history has them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

from skywalker.clients.call import GRACE_S
from skywalker.errors import OutcomeUnknown, RequestError, SkywalkerError, TimedOut, Unreachable
from tests.promises.history import (
    LOST,
    TIMED_OUT,
    TRUE,
    UNANSWERED,
    UNKNOWN,
    UNREACHABLE,
    VALUE,
    Call,
    Connection,
    Given,
    Stall,
    value_of,
)


def client(name: str, *, acks: bool = False) -> Connection:
    """Return what stands for all connections of one client."""
    return Connection(name, time.monotonic(), [], acks=acks, library=True, is_whole=False)


def begin(of: Connection, method: str, topic: str, timeout_s: float, value: str = "") -> Call:
    """Note that a client begins a call."""
    call = Call(of, len(of.calls), method, topic, value, time.monotonic(), timeout_s)
    of.calls[call.id] = call
    return call


async def ended(call: Call, result: Awaitable[Any]) -> Any:
    """Wait for the result of a call and note how it ended; return the result, None for an error."""
    got = None
    try:
        got = await result
    except SkywalkerError as error:
        call.answer = answer_to(error)
    else:
        call.answer, call.got = (TRUE, "") if call.value else (VALUE, value_of(got))
    call.answers += 1
    call.answered_at = time.monotonic()
    if call.answer == VALUE:
        call.connection.given.append(
            Given(call.answered_at, call.connection, call.method, call.id, call.topic, call.got)
        )
    return got


def answer_to(error: SkywalkerError) -> str:
    """Return what an error of the library says, in the words of a history."""
    match error:
        case OutcomeUnknown():
            return UNKNOWN
        case TimedOut():
            return TIMED_OUT
        case Unreachable():
            return UNREACHABLE
        case RequestError():
            return error.code
    return type(error).__name__


def save(file: Path, connections: Sequence[Connection], stalls: Sequence[Stall] = ()) -> None:
    """Keep what a program noted that ends now: of calls whose time is not over it hears no more."""
    now = time.monotonic()
    for call in (call for connection in connections for call in connection.calls.values()):
        if call.answer == UNANSWERED and now < call.at + call.timeout_s + GRACE_S:
            call.answer, call.answered_at = LOST, now
    file.write_bytes(pickle.dumps(([*connections], [*stalls])))


def load(file: Path) -> tuple[list[Connection], list[Stall]]:
    """Return what save() has kept."""
    found: tuple[list[Connection], list[Stall]] = pickle.loads(file.read_bytes())
    return found
