"""Where members of a Silk cluster are, and what it takes to be let in."""

from __future__ import annotations

import dataclasses

from skywalker.address import is_numeric
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_SILK_PORT
from skywalker.silk import endpoints
from skywalker.silk.endpoints import TCP, address_of


@dataclasses.dataclass(frozen=True, slots=True)
class SilkAccess:
    """Some members of one cluster, any of which will do."""

    endpoints: tuple[str, ...]  # none of them if nobody is known yet
    keys_file: str = ""  # empty: whoever comes is let in

    @classmethod
    def parse(cls, text: str, keys_file: str = "") -> SilkAccess:
        """Read "host:3444,host:3444", where each may also be tcp://host:3444 or ipc:///path. Raises LocalProtocolError.

        An empty text is nobody.
        """
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if not all(parts):
            raise LocalProtocolError(
                f"an endpoint is missing in {text!r}: write one or more host:{DEFAULT_SILK_PORT}, with a comma between"
            )
        return cls(tuple(dict.fromkeys(map(_member, parts))), keys_file)

    def __str__(self) -> str:
        return f"Silk at {','.join(each.removeprefix(TCP) for each in self.endpoints)}"


def listening(text: str) -> str:
    """Return the endpoint to listen at that a text stands for. Raises LocalProtocolError."""
    endpoint = endpoints.endpoint(text)
    host = host_of(endpoint)
    if host is not None and not is_numeric(host):
        raise LocalProtocolError(
            f"{host} is not a numeric address to listen at: write 0.0.0.0:{DEFAULT_SILK_PORT} for all of this machine"
        )
    return endpoint


def host_of(endpoint: str) -> str | None:
    """Return the host of an endpoint to listen at, numeric as a rule; None if it is not of TCP."""
    address = address_of(endpoint)
    if address is None:
        return None
    return "0.0.0.0" if address.host == "*" else address.host


def _member(text: str) -> str:
    """Return an endpoint as members write their own."""
    endpoint = endpoints.endpoint(text)
    address = address_of(endpoint)
    if address is None:
        return endpoint
    if not address.port or address.host in endpoints.WILDCARDS or "/" in address.host:
        raise LocalProtocolError(f"{text} is nowhere in particular: write host:{DEFAULT_SILK_PORT}")
    return f"{TCP}{address}"
