"""What every source of addresses has in common, and the one that somebody has written down.

They know addresses only: who answers there, the nodes tell.
"""

from __future__ import annotations

import abc
import dataclasses

from skywalker.address import Address
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_HOST, DEFAULT_PORT


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What one look has found."""

    addresses: frozenset[Address]
    pause_s: float | None
    """Seconds until another look is of use: 0 for at once, None for never."""


class Source(abc.ABC):
    """Where the addresses of a cluster's nodes are found. Its text says where that is, and holds no secret.

    All methods block. One thread at a time may look(); all else may be called by any.
    """

    @abc.abstractmethod
    def look(self) -> Finding:
        """Return what is there now. May first wait until that differs from the last look.

        Raises DiscoveryError: nothing is known now. The look after one that failed waits for the end of that at most.
        """

    def addresses(self) -> frozenset[Address]:
        """Return what is there now, without waiting for anything but the answer. Raises DiscoveryError."""
        return self.look().addresses

    def leave(self) -> None:  # noqa: B027  # most are not told who comes and goes
        """Say that this node goes away, where the source has others know it: it is found no more. May take a moment."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of what it has, and have a look that is under way end soon where that can be. Nothing may be asked
        afterwards; a thread that looks must not keep its process from ending."""

    @abc.abstractmethod
    def __str__(self) -> str: ...


class StaticSource(Source):
    """A list of addresses, always the same. Names in it are left to whoever dials them."""

    def __init__(self, addresses: frozenset[Address]) -> None:
        self._addresses = addresses

    @classmethod
    def parse(cls, text: str, default_port: int = DEFAULT_PORT) -> StaticSource:
        """Read addresses with commas between them. Raises LocalProtocolError naming the one that is none."""
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise LocalProtocolError(
                f"an address is missing in {text!r}: write one or more host:port with a comma between them,"
                f" such as {DEFAULT_HOST}:{default_port}"
            )
        return cls(frozenset(Address.parse(part, default_port) for part in parts))

    def look(self) -> Finding:
        return Finding(self._addresses, None)

    def close(self) -> None:
        pass  # no look takes time

    def __str__(self) -> str:
        return ",".join(map(str, sorted(self._addresses)))
