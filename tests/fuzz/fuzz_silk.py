"""Messages of Silk, and what a node makes of the members that they tell it of.

Any bytes are a message, which says the same when it is encoded and read again, or a RemoteProtocolError. Whatever
messages come, in whatever order: every member is one that could be, at an endpoint of its own, and all who see the same
members give them the same version; what the node says can be encoded; it is never due in the past. Once nobody says
anything any more, it is alone, and holds nothing for anybody.

An input is a text of lines, each a message; of one that begins with a digit, so many seconds pass first. "%" stands for
the node's own id, and "@" for the id of what it said last, so that chance can answer it.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from skywalker.errors import RemoteProtocolError
from skywalker.silk.answers import Answers
from skywalker.silk.info import NodeInfo
from skywalker.silk.membership import Membership
from skywalker.silk.outbox import Answer, Broadcast, Send
from skywalker.wire.silk import INTERNAL, Message

ME = NodeInfo("me", "me", "tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
SEED = "tcp://127.0.0.1:9"
SILENCE_S = (1.0, 1.0, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 400.0, 2000.0, *[4000.0] * 10)
"""Seconds between looks, after which whoever was silent is a member no more, however rarely it had to say something."""


def check_input(data: bytes) -> object:
    """Hold the invariant for the lines of an input."""
    check_message(data)
    return Node().run(data)


def check_message(frame: bytes) -> Message | None:
    """Return what one frame says, None if nothing."""
    try:
        message = Message.decode(frame)
    except RemoteProtocolError:
        return None
    assert Message.decode(message.encode()) == message
    return message


class Node:
    """A node that joins."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ids = (f"own-{n}" for n in itertools.count())
        self.said = "own-0"
        self.answers = Answers()
        self.membership = Membership(ME, luck=lambda: 0.5, new_id=lambda: next(self.ids), now=self.now)
        self.membership.join(SEED, self.now)

    def run(self, data: bytes) -> object:
        """Have all lines come, and then nothing any more."""
        done = [self.do()]
        for line in data.split(b"\n")[:50]:
            if line[:1].isdigit():
                self.now += line[0] - 0x30
                self.membership.tick(self.now)
            said = line.lstrip(b"0123456789").replace(b"%", ME.id.encode()).replace(b"@", self.said.encode())
            message = check_message(said)
            if message is not None:
                self.receive(message)
            self.assert_sound()
            done.append(self.do())
        for pause_s in SILENCE_S:
            self.now += pause_s
            self.membership.tick(self.now)
            done.append(self.do())
        self.assert_sound()
        assert not self.membership.members
        self.membership.leave(self.now)
        assert self.membership.wait(self.now) is None
        return done

    def receive(self, message: Message) -> None:
        """Deal with a message as a node does."""
        if message.type.startswith(INTERNAL):
            self.membership.received(message, self.now)
        elif self.membership.heard(message.src, self.now) is not None and self.answers.is_new(message, self.now):
            assert self.answers.answer_to(message) is None
            self.answers.answered(message, b"done", self.now)
            assert self.answers.answer_to(message) == b"done"
            assert not self.answers.is_new(message, self.now)

    def do(self) -> list[str]:
        """Take what is to be done; return it as text."""
        done: list[Any] = self.membership.actions()
        for action in done:
            if isinstance(action, Send | Answer | Broadcast):
                self.said = action.message.id
                assert Message.decode(action.message.encode()) == action.message
        return [repr(action) for action in done]

    def assert_sound(self) -> None:
        """See that what the node knows could be."""
        members = self.membership.members
        assert ME.id not in members
        assert len({info.router for info in members.values()}) == len(members)
        fingerprint = 0
        for id, info in members.items():
            assert id == info.id
            assert NodeInfo.parse(info.as_map()) == info
            assert NodeInfo.parse(info.brief()) is not None
            assert info.router != ME.router
        for id in (ME.id, *members):
            fingerprint ^= int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "big")
        assert self.membership.version == f"{fingerprint:016x}"
        wait = self.membership.wait(self.now)
        assert wait is None or wait >= 0
