"""How people and nodes write where a node is: an endpoint of ZeroMQ, or for people just host:port."""

from __future__ import annotations

import re
from typing import Final

from skywalker.address import Address
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_SILK_PORT
from skywalker.wire.silk import MAX_NAME

WILDCARDS: Final = ("0.0.0.0", "*", "::")
"""Hosts that mean all addresses of a machine, and so none that others could use."""

TCP: Final = "tcp://"
IPC: Final = "ipc://"

_TCP: Final = re.compile(r"tcp://(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5}|\*)", re.ASCII)


def is_endpoint(text: str) -> bool:
    """Whether this is where ZeroMQ may be told to listen or to connect."""
    if len(text) > MAX_NAME or not text.isprintable():
        return False
    return address_of(text) is not None or (text.startswith(IPC) and text != IPC)


def endpoint(text: str) -> str:
    """Return the endpoint that a text stands for: "tcp://host:port", "ipc:///path", or "host:port" for TCP.

    Raises LocalProtocolError.
    """
    found = text if "://" in text else f"{TCP}{Address.parse(text, DEFAULT_SILK_PORT)}"
    if not is_endpoint(found):
        raise LocalProtocolError(f"{text!r} is no endpoint: write tcp://host:port or ipc:///path")
    return found


def address_of(endpoint: str) -> Address | None:
    """Return the host and port of an endpoint of TCP, port 0 where it is any free one; None of another."""
    match = _TCP.fullmatch(endpoint)
    port = 0 if match is None or match["port"] == "*" else int(match["port"])
    return None if match is None or port >= 65_536 else Address(match["v6"] or match["host"], port)


def beside(router: str) -> str:
    """Return the endpoint for what is broadcast by who listens at this one, unless it is told another."""
    address = address_of(router)
    return f"{router}.pub" if address is None else f"{TCP}{Address(address.host, 0)}"


def advertised(bound: str, host: str) -> str:
    """Return the endpoint at which others reach one that is bound, on `host` where that is not empty.

    Raises LocalProtocolError for one that listens on all addresses with no host given.
    """
    own = address_of(bound)
    if own is None:
        return bound
    if not host and own.host in WILDCARDS:
        raise LocalProtocolError(f"{bound} is on all addresses: say by advertise= at which host others reach it")
    return f"{TCP}{Address(host or own.host, own.port)}"


def is_ipv6(endpoint: str) -> bool:
    """Whether ZeroMQ is to use IPv6 for an endpoint.

    For names it is not: of their addresses ZeroMQ takes the first, and with IPv6 that of "localhost" is ::1, where few
    listen.
    """
    return "[" in endpoint
