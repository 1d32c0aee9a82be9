"""How people write where a node is: an endpoint of ZeroMQ, or just host:port."""

from __future__ import annotations

from typing import Final

from skywalker.address import Address
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_SILK_PORT
from skywalker.silk.info import TRANSPORTS
from skywalker.wire.silk import MAX_NAME

WILDCARDS: Final = ("0.0.0.0", "*", "::")
"""Hosts that mean all addresses of a machine, and so none that others could use."""


def endpoint(text: str) -> str:
    """Return the endpoint that a text stands for: "tcp://host:port", "ipc:///path", or "host:port" for TCP.

    Raises LocalProtocolError.
    """
    if "://" not in text:
        return f"tcp://{Address.parse(text, DEFAULT_SILK_PORT)}"
    is_known = text.startswith(TRANSPORTS) and len(text) <= MAX_NAME and text.isprintable()
    if is_known and text.startswith("tcp://"):
        _tcp(text)
    elif not is_known or text == "ipc://":
        raise LocalProtocolError(f"{text!r} is no endpoint: write tcp://host:port or ipc:///path")
    return text


def advertised(bound: str, host: str) -> str:
    """Return the endpoint at which others reach one that is bound, on `host` where that is not empty.

    Raises LocalProtocolError for one that listens on all addresses with no host given.
    """
    if not bound.startswith("tcp://"):
        return bound
    own, port = _tcp(bound)
    if not host and own in WILDCARDS:
        raise LocalProtocolError(f"{bound} is on all addresses: say by advertise= at which host others reach it")
    where = host or own
    return f"tcp://[{where}]:{port}" if ":" in where else f"tcp://{where}:{port}"


def is_ipv6(endpoint: str) -> bool:
    """Whether ZeroMQ is to use IPv6 for an endpoint.

    For names it is not: of their addresses ZeroMQ takes the first, and with IPv6 that of "localhost" is ::1, where few
    listen.
    """
    return "[" in endpoint


def _tcp(text: str) -> tuple[str, int]:
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    host = host.strip("[]")
    is_port = port == "*" or (port.isascii() and port.isdecimal() and int(port) < 65_536)
    if not host or not is_port:
        raise LocalProtocolError(f"{text!r} is no endpoint: write tcp://host:port")
    return host, 0 if port == "*" else int(port)
