"""What Membership wants done. `address` says at which connection."""

from __future__ import annotations

import dataclasses

from skywalker.address import Address
from skywalker.members import Snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class Dial:
    """Connect and greet; report greeted(), foreign() or ended()."""

    address: Address


@dataclasses.dataclass(frozen=True, slots=True)
class Ping:
    """Ask whether the node lives; report answered()."""

    address: Address


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the ring that the node uses; report listed(), whatever comes of it."""

    address: Address


@dataclasses.dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection or end the attempt, if there is one, and report nothing more of it."""

    address: Address


@dataclasses.dataclass(frozen=True, slots=True)
class Publish:
    """The cluster has changed."""

    snapshot: Snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An operator should know this about an address; it is said once."""

    address: Address
    text: str


Action = Dial | Ping | Ask | HangUp | Publish | Notice
