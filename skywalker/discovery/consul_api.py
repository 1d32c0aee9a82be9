"""Talking to Consul through python-consul2, and telling what went wrong in one way."""

from __future__ import annotations

import contextlib
import ssl
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from skywalker import extras
from skywalker.discovery.consul_access import ConsulAccess
from skywalker.errors import DiscoveryError
from skywalker.limits import MIB

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
