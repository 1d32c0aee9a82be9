"""Where a node for the main line is looked for, and what is said where there is none. Knows no socket and no clock.

`luck` is random, from 0 to below 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.errors import RequestError, Unauthorized, Unreachable, Why
from skywalker.tls.words import SPEAKS_TLS

MEMBERS_TRIED: Final = 3
"""Members of the cluster that are dialled before the source is asked: behind a router none may be within reach."""

_TOLD: Final = 4
"""Addresses that an error names."""


class Homes:
    """The addresses that are known besides those of the source, and which of all are a last resort."""

    def __init__(self) -> None:
        self._members: frozenset[Address] = frozenset()
        self._avoided: set[Address] = set()

    @property
    def has_members(self) -> bool:
        """Whether a cluster is known."""
        return bool(self._members)

    def learn(self, members: Iterable[Address]) -> None:
        """These are the nodes of the cluster; none if there is no cluster."""
        self._members = frozenset(members)

    def avoid(self, address: Address | None) -> None:
        """The node there was just lost, or is going away."""
        if address is not None:
            self._avoided.add(address)

    def settle(self) -> None:
        """There is a main line again: what was to be avoided may be worth another try when that is lost."""
        self._avoided.clear()

    def some_members(self, luck: Callable[[], float]) -> list[Address]:
        """Return a few members of the cluster, at random, in the order in which to dial them."""
        return self.ordered(self._members - self._avoided, luck)[:MEMBERS_TRIED]

    def ordered(self, addresses: Iterable[Address], luck: Callable[[], float]) -> list[Address]:
        """Return addresses at random, those to be avoided last; the same luck gives the same order."""
        return sorted(sorted(addresses), key=lambda address: (address in self._avoided, luck()))


class Round:
    """One go at all addresses that there are: members of the cluster first, then what the source finds."""

    def __init__(self, homes: Homes, luck: Callable[[], float]) -> None:
        self._homes = homes
        self._luck = luck
        self._left = homes.some_members(luck)
        self._tried: set[Address] = set()
        self._causes: list[Cause] = []
        self._dialled: Address | None = None
        self.is_complete = False  # whether the source was asked

    def found(self, addresses: Iterable[Address]) -> None:
        """The source was asked, and told these."""
        self.is_complete = True
        self._left = self._homes.ordered(set(addresses) - self._tried, self._luck)
        if not self._tried and not self._left:
            self._causes.append(Cause("no node is known there"))

    def trouble(self, cause: str) -> None:
        """The source was asked in vain."""
        self.is_complete = True
        self._causes.append(Cause(cause))

    @property
    def is_last(self) -> bool:
        """Whether nothing is left to be tried after this address."""
        return self.is_complete and not self._left

    def next(self) -> Address | None:
        """Return the address to dial, None if none is left: then ask the source, unless the round is complete."""
        self._dialled = self._left.pop(0) if self._left else None
        if self._dialled is not None:
            self._tried.add(self._dialled)
        return self._dialled

    def failed(self, address: Address, cause: str) -> None:
        """Nobody answered there."""
        self._causes.append(Cause(f"{address}: {cause}", Cause.of(cause).why))
        self._dialled = None

    def cause(self, where: str, silence: str = "no answer so far") -> Cause:
        """Return why no node was reached so far; `where` is what the text will begin with."""
        causes = [*self._causes]
        if self._dialled is not None:
            causes.append(Cause(f"{self._dialled}: {silence}"))
        told = [cause.removeprefix(f"{where}: ").removeprefix(f"{where} ") for cause in causes[:_TOLD]]
        more = len(causes) - len(told)
        return Cause.joined("; ".join([*told, *([f"and {more} more"] if more else [])]), causes)


_ADVICE: Final[Mapping[Why, str]] = {
    Why.TLS_WANTED: "connect there, or give tls=",
    Why.CERTIFICATE_WANTED: "load one into the context given as tls=",
    Why.CERTIFICATE_REFUSED: "load another into the context given as tls=",
    Why.MUTE: "its log says why; who you are is known by your certificate, in the context given as tls=",
    Why.NO_TLS: "connect without TLS, or to its port for that",
    Why.STRANGE_AUTHORITY: "load that authority into the context given as tls=",
}


def no_node(where: str, cause: str, more: str = "") -> Unreachable | Unauthorized:
    """Return the error that says why there is no node at `where`, and `more`: Unauthorized if one refuses us."""
    cause = Cause.of(cause)
    why = cause.why
    # With a scheme it is no address, but what knows some.
    text = f"{cause}, at skywalkers://{where}" if why is Why.TLS_WANTED and "://" not in where else cause
    error: Unreachable | Unauthorized
    if why is not None and cause.lasts and why.is_about_us:
        error = Unauthorized(f"not let in at {where}: {text}{more}")
    elif cause.lasts:
        error = Unreachable(f"no node to trust at {where}: {text}{more}")
    else:
        error = Unreachable(f"no node reachable at {where}: {text}{more}")
    if why is not None:
        error.why = why
        error.advice = _ADVICE.get(why, "")
    return error


def refused(where: str, error: RequestError) -> RequestError:
    """Return what a node says of us who connected to `where`; if that is that it speaks TLS, with where it does."""
    is_tls_wanted = isinstance(error, Unauthorized) and error.details.get("tls") is True
    return no_node(where, SPEAKS_TLS) if is_tls_wanted else error  # type: ignore[return-value]  # it is about us
