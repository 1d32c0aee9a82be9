"""The admin HTTP API of a node, for the commands that watch it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from skywalker.address import Address
from skywalker.dialling import cause_of
from skywalker.errors import Unreachable
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_HOST, MIB

DEFAULT_ADMIN_ADDRESS: Final = f"{DEFAULT_HOST}:{DEFAULT_ADMIN_PORT}"

ANSWER_S: Final = 2.0
"""Seconds in which the server must accept a connection, and again go on with its answer."""

OK: Final = 200

MAX_ANSWER: Final = 16 * MIB
"""Bytes of one answer; the longest are lists of 1,000."""


class NoAnswer(Unreachable):
    """No admin server answers there, or none of ours."""


class AdminApi:
    """The API at one address; a connection for each request. Any number of threads may use it."""

    def __init__(self, address: Address, timeout: float = ANSWER_S) -> None:
        self.address = address
        self._timeout = timeout

    def get(self, path: str, **parameters: object) -> dict[str, Any]:
        """Return the document at a path such as "/api/state". Raises NoAnswer."""
        import http.client  # only now: help should be quick
        from urllib.parse import urlencode

        target = f"{path}?{urlencode(parameters)}" if parameters else path
        connection = http.client.HTTPConnection(self.address.host, self.address.port, timeout=self._timeout)
        try:
            connection.connect()
            # By number: a server answers to no name but the one that it is bound to.
            peer = Address(connection.sock.getpeername()[0].partition("%")[0], self.address.port)
            connection.request("GET", target, headers={"Host": str(peer), "Connection": "close"})
            with connection.getresponse() as answer:
                status, body = answer.status, answer.read(MAX_ANSWER + 1)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that no name server could know
            raise NoAnswer(
                f"nothing answers at {self.address}: {cause_of(error)}. Name the address of a node's admin server, "
                "as its --admin-bind and --admin-port have it; a node run with --no-admin has none"
            ) from error
        except http.client.HTTPException as error:
            raise NoAnswer(
                f"what answers at {self.address} does not speak HTTP: {error or type(error).__name__}"
            ) from error
        finally:
            connection.close()
        return self._document(target, status, body)

    def _document(self, target: str, status: int, body: bytes) -> dict[str, Any]:
        if len(body) > MAX_ANSWER:
            raise NoAnswer(f"what answers at {self.address} says more than {MAX_ANSWER:,} bytes")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict) and status == OK:
            return document
        said = document.get("error") if isinstance(document, dict) else None
        said = f", and says: {str(said)[:200]}" if said else ""
        raise NoAnswer(
            f"what answers at {self.address} is no admin server of a skywalker node, or one of another version: "
            f"it answers GET {target} with status {status}{said}"
        )


@contextlib.contextmanager
def reading(address: Address) -> Iterator[None]:
    """Turn what comes of a document of another shape, inside the block, into NoAnswer."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise NoAnswer(
            f"what answers at {address} is an admin server of another version: {type(error).__name__} "
            f"{str(error)[:100]}"
        ) from error


def nodes_of_cluster(api: AdminApi) -> list[Address]:
    """Return where the admin servers of a node's cluster should be, its own first: at its port, on each node's host.

    Raises NoAnswer.
    """
    ring = api.get("/api/ring")
    with reading(api.address):
        hosts = [Address.parse(each["address"]).host for each in ring["members"] if each["id"] != ring["here"]]
    return [api.address, *sorted(Address(host, api.address.port) for host in hosts)]
