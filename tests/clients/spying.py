"""Which connections a client has, and which its calls go over."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from skywalker.clients.call import Call
from skywalker.clients.line import Line
from skywalker.clients.requests import MEETINGS
from tests.clients.driving import Driver
from tests.helpers import eventually

SOON = 10.0


class Spy:
    """Sees which connection every call was put on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.right = 0  # meetings that went to the worker that owns their topic
        self.forwarded = 0
        put = Line.put

        def seen(line: Line, call: Call, now: float) -> None:
            if call.kind in MEETINGS and call.owner is not None and line.greeting is not None:
                if (line.greeting["node"], line.greeting["worker"]) == call.owner:
                    self.right += 1
                else:
                    self.forwarded += 1
            put(line, call, now)

        monkeypatch.setattr(Line, "put", seen)

    def forget(self) -> None:
        self.right = self.forwarded = 0


def connections(*ports: int) -> int:
    """Return how many connections this process has to these ports of this machine."""
    mine = psutil.Process().net_connections("tcp")
    return sum(bool(each.raddr) and each.raddr.port in ports and each.status == "ESTABLISHED" for each in mine)


def meet(junction: Driver, topic: Any, value: Any = 1) -> None:
    """Have one junction send and receive."""
    call = junction.begin("recv", topic, timeout=SOON)
    assert junction.send(topic, value, timeout=SOON) is True
    assert call.result() == value


def meet_until_direct(junction: Driver, spy: Spy, topic: str) -> None:
    """Meet on many topics until none of the calls is forwarded."""

    def direct() -> bool:
        spy.forget()
        for number in range(24):
            meet(junction, [topic, number])
        return spy.right == 48 and spy.forwarded == 0

    eventually(direct, within=SOON)
