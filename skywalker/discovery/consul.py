"""Addresses from Consul: the instances of a service whose health checks pass. By way of python-consul2."""

from __future__ import annotations

import contextlib
import dataclasses
import ssl
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from skywalker import extras, limits
from skywalker.address import Address, shown
from skywalker.discovery.source import Finding, Source
from skywalker.errors import DiscoveryError, LocalProtocolError
from skywalker.limits import MIB

DEFAULT_PORT: Final = 8500
DEFAULT_TLS_PORT: Final = 8501


@dataclasses.dataclass(frozen=True, slots=True)
class ConsulAccess:
    """The HTTP API of one Consul. The files are PEM."""

    address: Address
    tls: bool = False
    token: str = dataclasses.field(default="", repr=False)
    ca_file: str = ""  # empty: the authorities that this machine trusts
    cert_file: str = ""
    key_file: str = ""  # empty: the key is in cert_file

    @classmethod
    def parse(
        cls, url: str, *, token: str = "", ca_file: str = "", cert_file: str = "", key_file: str = ""
    ) -> ConsulAccess:
        """Read "http://host:8500" or "https://host:8501". Raises LocalProtocolError."""
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            if (
                parts.scheme in ("http", "https")
                and parts.hostname
                and parts.port != 0
                and parts.path in ("", "/")
                and not (parts.username or parts.password or parts.query or parts.fragment)
            ):
                tls = parts.scheme == "https"
                address = Address(parts.hostname, parts.port or (DEFAULT_TLS_PORT if tls else DEFAULT_PORT))
                return cls(address, tls, token, ca_file, cert_file, key_file)
        raise LocalProtocolError(
            f"{shown(url)} is no URL of a Consul: write http://host:{DEFAULT_PORT} or https://host:8501"
        )

    def __str__(self) -> str:
        return f"Consul at {'https' if self.tls else 'http'}://{self.address}"


CONNECT_S: Final = 3.0
"""Seconds for a connection to Consul, whose agent is as a rule on this machine."""

ANSWER_S: Final = 5.0
"""Seconds of silence after which an answer that has nothing to wait for is given up."""

MAX_ANSWER: Final = 64 * MIB
"""Bytes of one answer: some 40,000 instances of a service."""

MAX_CAUSE: Final = 200
"""Characters that are told of what Consul says."""


class ConsulApi:
    """The endpoints of python-consul2 for one Consul. Any number of threads may use it."""

    def __init__(self, access: ConsulAccess, *, wait_s: float = 0.0, answer_s: float | None = None) -> None:
        """`wait_s` is how long Consul may wait, as it is asked to, before it answers. Raises DiscoveryError."""
        try:
            from consul.base import Consul, ConsulException
            from consul.std import HTTPClient
        except ImportError as error:
            raise DiscoveryError(f"Consul needs python-consul2: {extras.command_for('consul')}") from error
        self._access = access
        self._refusal: type[Exception] = ConsulException
        answer_s = ANSWER_S if answer_s is None else answer_s
        host = access.address.host
        self.http = HTTPClient(
            f"[{host}]" if ":" in host else host,
            access.address.port,
            "https" if access.tls else "http",
            verify=access.ca_file or _authorities(),
            cert=(access.cert_file, access.key_file) if access.key_file else access.cert_file or None,
            timeout=(min(CONNECT_S, answer_s), wait_s + answer_s),
        )
        # Requests go where we were told to, whatever proxies the environment has and wherever the answer points; each
        # by a connection of its own, as certificates are replaced while a node runs.
        self.http.session.trust_env = False
        self.http.session.max_redirects = 0
        self.http.session.hooks["response"].append(_bound)
        self.http.session.headers["Connection"] = "close"
        if access.token:
            self.http.session.headers["X-Consul-Token"] = access.token
        # What the endpoints want of their client. The library's own would have CONSUL_HTTP_* of the environment, if
        # there is any, rather than what it is told.
        self.token = None
        self.dc = None
        self.consistency = "default"
        self.agent = Consul.Agent(self)
        self.catalog = Consul.Catalog(self)
        self.health = Consul.Health(self)
        self.status = Consul.Status(self)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn all that can go wrong with a request inside the block into a DiscoveryError that says what."""
        before = sys.exc_info()[1]  # the caller may be handling an error of its own
        try:
            yield
        except OSError as error:
            cause = _root(error, before)
            if isinstance(cause, TimeoutError):
                raise DiscoveryError(f"{self._access} does not answer") from error
            raise DiscoveryError(f"{self._access}: {_words(cause)}{self._files(cause)}") from error
        except self._refusal as error:
            raise DiscoveryError(f"{self._access} refuses: {_words(error)}") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise DiscoveryError(f"what answers at {self._access} is no Consul: {error!r}") from error

    def _files(self, cause: BaseException) -> str:
        # OpenSSL does not say which of them it cannot read.
        access = self._access
        files = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        return f" (the TLS files are {files})" if files and isinstance(cause, ssl.SSLError) else ""


def _bound(response: Any, **_: Any) -> None:
    """Have what is read of an answer end with an error where it is too long: whoever answers may never end it."""
    whole = response.iter_content

    def bounded(*args: Any, **kwargs: Any) -> Iterator[bytes]:
        left = MAX_ANSWER
        for piece in whole(*args, **kwargs):
            left -= len(piece)
            if left < 0:
                response.close()
                raise ValueError(f"an answer of more than {MAX_ANSWER} bytes")
            yield piece

    response.iter_content = bounded


def _authorities() -> str | bool:
    """Return those that this machine trusts, rather than those that come with requests."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or True


def _root(error: BaseException, before: BaseException | None) -> BaseException:
    """Return what failed first after `before`: each layer beneath us wraps it in an error of its own."""
    while error.__context__ not in (None, before):
        error = error.__context__
    return error


def _words(error: BaseException) -> str:
    # Some have no text at all, such as a connection that just ended; some have that of a whole page.
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return textwrap.shorten(text, MAX_CAUSE) or type(error).__name__


WAIT_S: Final = 50.0
"""Seconds for which Consul is asked to wait for a change: less than what most proxies allow a request."""

PAUSE_S: Final = 0.1
"""Seconds between looks at least: a service whose checks flap changes all the time, and we need not see it all."""


class ConsulSource(Source):
    """The instances of a service that pass. A look waits, in Consul, for a change since the last one."""

    def __init__(self, access: ConsulAccess, service: str, *, wait_s: float = WAIT_S) -> None:
        """Raises DiscoveryError where python-consul2 is not installed."""
        self._access = access
        self._service = service
        self._wait_s = wait_s
        # Consul adds up to a sixteenth to what it waits, so that not all clients come back at once.
        self._patient = ConsulApi(access, wait_s=wait_s * 17 / 16)
        self._quick = ConsulApi(access)
        self._index = 0

    def look(self) -> Finding:
        # Where there was an error the Consul that answers next may count anew, and would have us wait for an index
        # that it reaches in a year: so from 0, which waits for nothing.
        index, self._index = self._index, 0
        newer, addresses = self._ask(self._patient if index else self._quick, index)
        # As Consul's documentation of blocking queries has it: back to 0 when it goes backwards, and an
        # index below 1, which some proxies make up, would never wait.
        self._index = 0 if 0 < newer < index else max(newer, 1)
        return Finding(addresses, PAUSE_S)

    def addresses(self) -> frozenset[Address]:
        return self._ask(self._quick, 0)[1]

    def close(self) -> None:
        pass  # the library cannot end a request from outside; one that waits ends with its thread's process

    def __str__(self) -> str:
        return f"{self._access}, service {self._service}"

    def _ask(self, api: ConsulApi, index: int) -> tuple[int, frozenset[Address]]:
        with api.errors():
            newer, entries = api.health.service(self._service, index=index, wait=f"{self._wait_s:.0f}s", passing=True)
            return int(newer), frozenset(map(_address, entries))


def _address(entry: dict[str, Any]) -> Address:
    # One that was registered without an address is where its Consul agent is; without a port, at the usual one.
    service = entry["Service"]
    host, port = service["Address"] or entry["Node"]["Address"], service["Port"] or limits.DEFAULT_PORT
    if not (isinstance(host, str) and host and isinstance(port, int) and 0 < port < 65536):
        raise ValueError(f"an instance at host {host!r}, port {port!r}")
    return Address(host, port)
