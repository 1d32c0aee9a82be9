"""Talking to Consul through python-consul2, and telling what went wrong in one way."""

from __future__ import annotations

import contextlib
import http.client
import textwrap
from collections.abc import Iterator
from typing import Final

from skywalker import extras
from skywalker.discovery.consul_access import ConsulAccess
from skywalker.discovery.consul_http import ConsulHttp
from skywalker.errors import DiscoveryError

ANSWER_S: Final = 5.0
"""Seconds of silence after which an answer that has nothing to wait for is given up."""

MAX_CAUSE: Final = 200
"""Characters that are told of what Consul says."""


class ConsulApi:
    """The endpoints of python-consul2 for one Consul. Any number of threads may use it."""

    def __init__(self, access: ConsulAccess, *, wait_s: float = 0.0) -> None:
        """`wait_s` is how long Consul may wait, as it is asked to, before it answers. Raises DiscoveryError."""
        try:
            from consul.base import Consul, ConsulException
        except ImportError as error:
            raise DiscoveryError(f"Consul needs python-consul2: {extras.command_for('consul')}") from error
        self._access = access
        self._refusal: type[Exception] = ConsulException
        # What the library's endpoints want of their client. Its own makes these from the environment.
        self.http = ConsulHttp(access, wait_s + ANSWER_S)
        self.token = access.token
        self.dc = None
        self.health = Consul.Health(self)
        self.agent = Consul.Agent(self)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn all that can go wrong with a request inside the block into a DiscoveryError that says what."""
        try:
            yield
        except TimeoutError as error:
            raise DiscoveryError(f"{self._access} does not answer") from error
        except (OSError, http.client.HTTPException) as error:
            raise DiscoveryError(f"{self._access}: {_cause(error)}") from error
        except self._refusal as error:
            raise DiscoveryError(f"{self._access} refuses: {_cause(error)}") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise DiscoveryError(f"what answers at {self._access} is no Consul: {error!r}") from error

    def close(self) -> None:
        """End all requests that are under way with an error, from any thread. There can be no more."""
        self.http.close()


def _cause(error: Exception) -> str:
    # Some have no text at all, such as a connection that just ended; some have that of a whole page.
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return textwrap.shorten(text, MAX_CAUSE) or type(error).__name__
