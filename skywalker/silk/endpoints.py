"""How people and nodes write where a node is: an endpoint of ZeroMQ, or for people just host:port."""

from __future__ import annotations

import ipaddress
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

HERE: Final = "localhost"
"""What host() calls this machine, as far as only its own processes get there: loopback, and Unix sockets."""

Origin = str | None
"""The host that a message came from, as canonical() writes it; None where that is not known."""

_TCP: Final = re.compile(r"tcp://(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^:;\[\]\s/]+)):(?P<port>[0-9]{1,5}|\*)", re.ASCII)


def is_endpoint(text: str) -> bool:
    """Whether this is where ZeroMQ may be told to listen or to connect."""
    if len(text) > MAX_NAME or not text.isprintable():
        return False
    return address_of(text) is not None or (text.startswith(IPC) and text != IPC)


def is_somewhere(text: str) -> bool:
    """Whether others can connect to this endpoint: one that is all addresses, or any port, would be of their own."""
    address = address_of(text)
    if address is None:
        return is_endpoint(text)
    return is_endpoint(text) and address.port > 0 and canonical(address.host) not in WILDCARDS


def host(endpoint: str) -> str:
    """Return the host of an endpoint, the same one for all ways in which its number can be written."""
    address = address_of(endpoint)
    return HERE if address is None else canonical(address.host)


def canonical(host: str) -> str:
    """Return a host as host() calls it. A name stays what it is, as nobody is asked what it stands for."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        try:
            number = _shortened(host)
        except ValueError:
            name = host.lower().rstrip(".")
            return HERE if name == HERE or name.endswith(f".{HERE}") else name
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped is not None:
        number = number.ipv4_mapped
    return HERE if number.is_loopback else str(number)


def _shortened(host: str) -> ipaddress.IPv4Address:
    """Return the address that the resolver reads in numbers without looking them up: 127.1, 0x7f000001, 0177.0.0.1.

    Raises ValueError.
    """
    parts = host.split(".")
    numbers = [int(part, 8 if part[:1] == "0" and part.isdigit() else 0) for part in parts]
    if len(numbers) > 4 or not all(0 <= number < 256 for number in numbers[:-1]):
        raise ValueError(host)
    return ipaddress.IPv4Address(sum(number << 24 - 8 * at for at, number in enumerate(numbers[:-1])) + numbers[-1])


def endpoint(text: str) -> str:
    """Return the endpoint that a text stands for: "tcp://host:port", "ipc:///path", or "host:port" for TCP.

    Raises LocalProtocolError.
    """
    found = text if "://" in text else f"{TCP}{Address.parse(text, DEFAULT_SILK_PORT)}"
    if not is_endpoint(found):
        raise LocalProtocolError(f"{text!r} is not an endpoint: write tcp://host:port or ipc:///path")
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
