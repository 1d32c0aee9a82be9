"""What people write: addresses, endpoints, sources of nodes, times, sizes and numbers.

Any text is one of these, and then written again it is the same, or an error that its function names. What is a token or
a password in a URL stands in no error and no description.

The first byte of an input says what its text is to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from skywalker.address import Address
from skywalker.discovery.url import dns_server, source_of
from skywalker.errors import DiscoveryError, LocalProtocolError
from skywalker.journal.settings import rotation, sampling
from skywalker.silk.endpoints import endpoint, is_endpoint
from skywalker.units import count, counts, duration, size
from tests.fuzz.twins import outcome

SECRET = "Qz7secretX"
MOST = 10**9


def check_input(data: bytes) -> object:
    """Hold the invariant for one text."""
    text = data[1:].decode("utf-8", "surrogateescape")
    return FORMS[(data or b"\0")[0] % len(FORMS)](text)


def address(text: str) -> object:
    found = outcome(lambda: Address.parse(text), LocalProtocolError)
    if isinstance(found, Address):
        assert 0 < found.port < 65536
        assert found.host
        assert Address.parse(str(found)) == found
    return found


def source(text: str) -> object:
    """The secret is put where the text has an asterisk, as it is and as a URL has it."""
    for secret in (SECRET, quote(SECRET, safe="")):
        whole = text.replace("*", secret)
        try:
            found = source_of(whole)
        except (LocalProtocolError, DiscoveryError) as error:
            said = str(error)
        else:
            said = str(found)
            found.close()
        assert SECRET not in said or not is_secret(whole), said
    return said


def is_secret(text: str) -> bool:
    """Whether the secret stands only where a secret does."""
    scheme, _, _ = text.partition("://")
    if scheme.lower() != "consul":
        return False
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    elsewhere = f"{scheme}{host}{parts.path}".lower()
    words = [word.partition("=") for word in parts.query.split("&")]
    return SECRET.lower() not in elsewhere and all(
        key == "token" or SECRET not in f"{key}{value}" for key, _, value in words
    )


def endpoints(text: str) -> object:
    found = outcome(lambda: endpoint(text), LocalProtocolError)
    if isinstance(found, str):
        assert is_endpoint(found)
        assert endpoint(found) == found
    return found, is_endpoint(text)


def bounded(form: Callable[[str], Any], least: float = 0) -> Callable[[str], object]:
    """A form of numbers that are never below `least`, and never anything but numbers."""

    def check(text: str) -> object:
        found = outcome(lambda: form(text), ValueError)
        assert isinstance(found, tuple) or found >= least
        return found

    return check


def numbers(text: str) -> object:
    found = outcome(lambda: counts(text, MOST), ValueError)
    if found[0] != "ValueError":
        assert list(found) == sorted(set(found))
        assert 1 <= found[0] <= found[-1] <= MOST
        assert counts(",".join(map(str, found)), MOST) == found
    return found


def name_server(text: str) -> object:
    return outcome(lambda: dns_server(text), LocalProtocolError)


def journal(text: str) -> object:
    return outcome(lambda: sampling(text), ValueError), outcome(lambda: rotation(text), ValueError)


FORMS = (address, source, endpoints, bounded(duration), bounded(size), bounded(count), numbers, name_server, journal)
