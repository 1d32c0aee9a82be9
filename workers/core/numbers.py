"""What the core and Python tell each other by numbers: enumerations of its headers, by the same names."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """What is to become of a frame that was looked at first."""

    GOES_ON = 0
    IS_DONE = 1
    HAS_TO_WAIT = 2


class Refusal(IntEnum):
    """Why a call or a subscription is refused, or ends with an error."""

    TOO_MANY_CALLS = 1
    TOO_MANY_BYTES = 2
    WAS_CANCELLED = 3
    VALUE_TOO_LARGE = 4
    SILENT_LISTENER = 5
    DRAINS = 6
    ACCOUNT_IS_FULL = 7
    REPLY_TOO_LARGE = 8
    LOST_LISTENER = 9
    SILENT_OWNER = 10
    LOST_OWNER = 11
    MESH_IS_FULL = 12
    OWNER_IS_FULL = 13


class Closed(IntEnum):
    """Why a connection is closed."""

    BY_PEER = 0
    CANNOT_READ = 1
    CANNOT_WRITE = 2
    BROKEN = 3
    UNREAD = 4
    BY_OWNER = 5
    LAST_WORDS_SAID = 6
    SLOW_SUBSCRIBER = 7
    SILENT = 8
    BECAME_LINK = 9
    MOVED = 10
    LOST_ON_ITS_WAY = 11


class Action(IntEnum):
    """What may be done to a topic, a bit each."""

    MAY_SEND = 1
    MAY_RECV = 2
    MAY_PUBLISH = 4
    MAY_SUBSCRIBE = 8


class StandsAs(IntEnum):
    """Where a worker is in its life, a bit each."""

    OPENING = 1
    REFUSING = 2
    REPLACED = 4
    LEAVING = 8
