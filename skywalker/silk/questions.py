"""Whom to ask which members it sees: one who sees others than we do, for longer than it takes all to see the same.

A version names a set of members, so that one that was read once tells nothing new. It is read again all the same, ever
more rarely: something may have been lost, or two may not see each other whom we see both.
"""

from __future__ import annotations

from typing import Final

from skywalker.silk import pace

MAX_VERSION: Final = 64
"""Characters of a version; ours have 16."""

MAX_REMEMBERED: Final = 256
"""Versions known to be read. One that is forgotten is at most read again."""


class Questions:
    """The questions that were asked. `period` is our own keepalive's, in seconds."""

    def __init__(self, period: float, now: float) -> None:
        self.latest = ""  # the id of the message that asked last
        self._period = period
        self._asked_at = now
        self._read: dict[str, tuple[int, float]] = {}  # by version: how often it was asked for, and when it last was

    def is_due(self, version: str, changed_at: float, now: float) -> bool:
        """Whether to ask one who sees this version, which is not ours; ours has last changed at `changed_at`."""
        # Just after a change it is only that not all have seen it. But where there is always one, ask all the same.
        since_change, since_question = now - changed_at, now - self._asked_at
        spread = pace.SPREADS * self._period
        if min(since_change, since_question) <= spread and since_question <= pace.ASK_AGAIN * self._period:
            return False
        times, asked_at = self._read.get(version, (0, now - self._period))
        return times == 0 or now - asked_at >= min(spread * 2**times, pace.READ_AGAIN * self._period)

    def asked(self, version: str, message_id: str, now: float) -> None:
        """One who sees this version was asked."""
        times, _ = self._read.pop(version, (0, now))
        self._read[version] = (min(times + 1, 16), now)
        if len(self._read) > MAX_REMEMBERED:
            del self._read[next(iter(self._read))]
        self.latest, self._asked_at = message_id, now
