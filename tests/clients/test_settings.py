"""What connect() accepts, and how it says no."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import skywalker
import skywalker.pubsub.aio
from skywalker.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("node:1234", "node", 1234),
        ("node", "node", 3443),
        (":1234", "127.0.0.1", 1234),
        ("", "127.0.0.1", 3443),
        ("10.0.0.1:1", "10.0.0.1", 1),
        ("[::1]:65535", "::1", 65535),
        ("[::1]", "::1", 3443),
        ("::1", "::1", 3443),
        ("fe80::1%eth0", "fe80::1%eth0", 3443),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1", 3443),
    ],
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text", ["node:", "node:0", "node:65536", "node:http", "node:-1", "[::1", "::1]:5", "a:1:2x", "node:٣"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="host:port"):
        skywalker.connect(text, connect_timeout=0)


@pytest.mark.parametrize("where", [None, 3443, ("127.0.0.1", 3443), b"127.0.0.1:3443"])
@pytest.mark.parametrize(
    "connect",
    [
        skywalker.connect,
        skywalker.pubsub.connect,
        lambda where: asyncio.run(skywalker.aio.connect(where)),
        lambda where: asyncio.run(skywalker.pubsub.aio.connect(where)),
    ],
)
def test_what_is_no_text_is_refused_with_an_example(where: Any, connect: Callable[[Any], object]) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match=f"of type {type(where).__name__}: write host:port as a str"):
        connect(where)


def test_a_unix_socket_is_a_path() -> None:
    address = Address.parse_unix("unix:///run/sky walker,?#.sock")
    assert (address.host, address.port, address.path) == ("", 0, "/run/sky walker,?#.sock")
    assert str(address) == "unix:///run/sky walker,?#.sock"
    assert address.is_unix


@pytest.mark.parametrize("text", ["unix://", "unix://run/door", "unix:///\0", "unix:///" + "x" * 107, "UNIX://a"])
def test_what_is_no_path_of_a_unix_socket_is_refused(text: str) -> None:
    with pytest.raises(skywalker.LocalProtocolError, match="Unix socket"):
        skywalker.connect(text, connect_timeout=0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dialect": "second"}, "'current' nor 'first'"),
        ({"max_frame": 65_536}, "64 to 65535"),
        ({"max_frame": 0}, "64 to 65535"),
        ({"connect_timeout": -1}, "0 to 86400"),
        ({"dialect": "first", "timeout_value": object()}, "MessagePack"),
        ({"name": "x" * 70_000}, "limit"),
        ({"token": 7}, "type int, allowed are str and bytes"),
    ],
)
def test_an_argument_that_is_not_allowed_is_refused_before_anything_is_dialled(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises((skywalker.LocalProtocolError, skywalker.TooLarge), match=says):
        skywalker.connect("127.0.0.1:1", **options)
