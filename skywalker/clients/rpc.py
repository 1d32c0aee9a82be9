"""The values that request() and serve() send each other; any language can speak them.

the request, on the topic that is served   {"reply": topic, "timeout": ms, "value": value}
the answer, on the private reply topic     {"value": result}, or {"error": text}
if whoever took it up is lost before       {"error": text, "gone": true}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from skywalker.clients.machine import Machine
from skywalker.errors import HandlerFailed, NoReply, SkywalkerError
from skywalker.limits import MAX_TIMEOUT_MS

_LONGEST_TEXT = 1000
"""Characters of a failed handler's message: enough to find it in its log, and surely fits in a frame."""


def private_topic(machine: Machine) -> list[Any]:
    """Return a topic that nobody else uses or can guess."""
    return ["skywalker.reply", machine.nonce(16)]


class Parcel(dict[str, Any]):
    """What is sent around a program's own value, which is its "value": an error about that speaks of nothing else."""


def request(reply_topic: Any, value: Any, timeout: float) -> Parcel:
    """Return what a request sends."""
    return Parcel(reply=reply_topic, timeout=math.ceil(timeout * 1000), value=value)


def success(result: Any) -> Parcel:
    """Return the answer of a handler that returned."""
    return Parcel(value=result)


def failure(error: Exception) -> dict[str, Any]:
    """Return the answer of a handler that raised."""
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except Exception:
        text = name  # it cannot even be told
    return {"error": text[:_LONGEST_TEXT]}


GONE: Final = {"error": "whoever took the request up is gone", "gone": True}
"""What comes in the place of an answer if nobody is there any more to give one."""


def unanswered(topic: Any, timeout: float, trouble: SkywalkerError | None) -> NoReply:
    """Return the error that says that no answer came in time: somebody has the request, unless that is the trouble."""
    if trouble is not None:
        return NoReply(f"no answer to the request to topic {topic!r} came; whether it was done is not known: {trouble}")
    return NoReply(
        f"the request to topic {topic!r} was taken up, but not answered within {timeout:g} s: "
        "its handler may still be at work, or be cut off; whether it was done is not known"
    )


def result(topic: Any, answer: Any) -> Any:
    """Return what the handler returned.

    Raises HandlerFailed if it did not, or if this is no answer, and NoReply if whoever had the request is gone.
    """
    match answer:
        case {"gone": True}:
            raise NoReply(
                f"the request to topic {topic!r} was taken up, but whoever did is gone without an answer: it ended, or "
                "lost its connection; whether it was done is not known"
            )
        case {"value": value}:
            return value
        case {"error": str(text)}:
            raise HandlerFailed(text[:_LONGEST_TEXT])  # it may be another program's
    raise HandlerFailed(f"the answer is not one of a handler: {answer!r:.100}")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as its handler's side sees it."""

    reply_topic: Any
    timeout: float  # seconds for which the other side waited at most when it sent this
    value: Any

    @classmethod
    def parse(cls, message: Any) -> Request | None:
        """Read a received value; None if it is no request."""
        match message:
            case {"reply": topic, "timeout": int(ms), "value": value} if ms >= 0:
                return cls(topic, min(ms, MAX_TIMEOUT_MS) / 1000, value)
        return None
