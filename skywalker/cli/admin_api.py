"""The admin HTTP API of a node, for the commands that watch it, and how these are told which nodes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.cli.credentials import Credentials, credential_options, hinted
from skywalker.cli.options import Command
from skywalker.dialling import cause_of
from skywalker.errors import LocalProtocolError, RequestError, SkywalkerError, Unauthorized, Unreachable
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_HOST, MIB

if TYPE_CHECKING:
    import http.client

DEFAULT_ADMIN_ADDRESS: Final = f"{DEFAULT_HOST}:{DEFAULT_ADMIN_PORT}"

ANSWER_S: Final = 2.0
"""Seconds in which the server must accept a connection, and again go on with its answer."""

OK: Final = 200
REFUSALS: Final = {401: "unauthorized", 403: "forbidden"}
"""Statuses with which a node refuses us for who we are, and the code of that."""

MAX_ANSWER: Final = 16 * MIB
"""Bytes of one answer; the longest are lists of 1,000."""


class NoAnswer(Unreachable):
    """No admin server answers there, or none of ours."""


FAILURES: Final = (NoAnswer, RequestError)
"""What may come of a question: nobody answers, or a node refuses us for who we are."""


@dataclass(frozen=True, slots=True, order=True)
class AdminAddress:
    """Where an admin server is, and whether it speaks TLS; None if that is not said."""

    at: Address
    tls: bool | None = None

    @classmethod
    def parse(cls, text: str) -> AdminAddress:
        """Read "host:port", "http://host:port", "https://host:port", or less. Raises LocalProtocolError."""
        scheme, mark, rest = text.partition("://")
        if mark and scheme in ("http", "https"):
            return cls(Address.parse(rest.removesuffix("/"), DEFAULT_ADMIN_PORT), scheme == "https")
        return cls(Address.parse(text, DEFAULT_ADMIN_PORT))

    def beside(self, host: str) -> AdminAddress:
        """Return where the admin server of another node should be: at the same port."""
        return AdminAddress(Address(host, self.at.port), self.tls)

    def __str__(self) -> str:
        return f"https://{self.at}" if self.tls else str(self.at)


class AdminApi:
    """The API at one address; a connection for each request. Any number of threads may use it."""

    def __init__(
        self, address: AdminAddress, credentials: Credentials | None = None, timeout: float = ANSWER_S
    ) -> None:
        self.address = address
        self._credentials = credentials or Credentials()
        self._timeout = timeout

    def get(self, path: str, **parameters: object) -> dict[str, Any]:
        """Return the document at a path such as "/api/state".

        Raises NoAnswer, RequestError if the node refuses us for who we are, ConfigError for what is in a file.
        """
        import http.client  # only now: help should be quick
        import ssl
        from urllib.parse import urlencode

        target = f"{path}?{urlencode(parameters)}" if parameters else path
        connection = self._connection()
        try:
            connection.connect()
            connection.request("GET", target, headers=self._headers(connection))
            with connection.getresponse() as answer:
                status, body = answer.status, answer.read(MAX_ANSWER + 1)
        except ssl.SSLError as error:
            raise self._no_tls(cause_of(error)) from error
        except http.client.HTTPException as error:
            raise NoAnswer(
                f"what answers at {self.address} does not speak HTTP: {error or type(error).__name__}"
                + self._is_it_tls()
            ) from error
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that no name server could know
            raise NoAnswer(
                f"nothing answers at {self.address}: {cause_of(error)}. Name the address of a node's admin server, "
                "as its --bind, or --admin-bind, and --admin-port have it; a node run with --no-admin has none"
            ) from error
        finally:
            connection.close()
        return self._document(target, status, body)

    def _connection(self) -> http.client.HTTPConnection:
        import http.client

        host, port = self.address.at.host, self.address.at.port
        context = self._credentials.context() if self.address.tls is not False else None
        if self.address.tls and context is None:
            context = self._credentials.made_context()
        if context is None:
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)

    def _headers(self, connection: http.client.HTTPConnection) -> dict[str, str]:
        # By number: without TLS a server answers to no name but the one that it is bound to.
        peer = Address(connection.sock.getpeername()[0].partition("%")[0], self.address.at.port)
        headers = {"Host": str(peer), "Connection": "close"}
        if self._credentials.token is not None:
            headers["Authorization"] = f"Bearer {self._credentials.token}"
        return headers

    def _no_tls(self, cause: Cause) -> SkywalkerError:
        if cause.why is not None and cause.why.is_about_us:
            error: SkywalkerError = Unauthorized(f"not let in by the admin server at {self.address}: {cause}")
        else:
            error = NoAnswer(f"no TLS with the admin server at {self.address}: {cause}")
        error.why = cause.why
        return hinted(error)

    def _is_it_tls(self) -> str:
        return "" if self.address.tls else f". If its node has tls_cert, ask https://{self.address}"

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
        if said and status in REFUSALS:
            refusal = f"the admin server at {self.address} refuses: {str(said)[:200]}"
            raise hinted(RequestError.from_wire(REFUSALS[status], refusal, {}))
        said = f", and says: {str(said)[:200]}" if said else ""
        raise NoAnswer(
            f"what answers at {self.address} is not the admin server of a skywalker node, or one of another version: "
            f"it answers GET {target} with status {status}{said}"
        )


@contextlib.contextmanager
def reading(address: AdminAddress) -> Iterator[None]:
    """Turn what comes of a document of another shape, inside the block, into NoAnswer."""
    try:
        yield
    # The last two are of a time that no calendar has.
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError) as error:
        raise NoAnswer(
            f"what answers at {address} is an admin server of another version: {type(error).__name__} "
            f"{str(error)[:100]}"
        ) from error


def nodes_of_cluster(api: AdminApi) -> list[AdminAddress]:
    """Return where the admin servers of a node's cluster should be, its own first: at its port, on each node's host.

    Raises as get() does.
    """
    ring = api.get("/api/ring")
    with reading(api.address):
        hosts = [Address.parse(each["address"]).host for each in ring["members"] if each["id"] != ring["here"]]
    return [api.address, *sorted(api.address.beside(host) for host in hosts)]


def admin_address(ctx: click.Context, param: click.Parameter, text: str) -> AdminAddress:
    """Return the address that an argument is. Raises BadParameter."""
    try:
        return AdminAddress.parse(text)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _addresses(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[AdminAddress, ...]:
    return tuple(dict.fromkeys(admin_address(ctx, param, text) for text in texts or (DEFAULT_ADMIN_ADDRESS,)))


def node_arguments(command: Command) -> Command:
    """Add ADDRESS..., --cluster and the credentials.

    The command gets them as `addresses`, of which there is one at least, `cluster` and `credentials`.
    """
    for option in (
        credential_options,
        click.option(
            "--cluster", is_flag=True, help="ask all nodes of the ring, on their own hosts at the same admin port"
        ),
        click.argument("addresses", metavar="[ADDRESS]...", nargs=-1, callback=_addresses),
    ):
        command = option(command)
    return command


def asked_nodes(addresses: tuple[AdminAddress, ...], cluster: bool, credentials: Credentials) -> list[AdminApi]:
    """Return whom to ask: those there, or with `cluster` all nodes that they know.

    Raises the first of FAILURES if none answers, ConfigError for what is in a file of the credentials.
    """
    credentials.context()  # raises now what would be too late later
    if not cluster:
        return [AdminApi(address, credentials) for address in addresses]
    found: list[AdminAddress] = []
    errors: list[SkywalkerError] = []
    for address in addresses:
        try:
            found += nodes_of_cluster(AdminApi(address, credentials))
        except FAILURES as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return [AdminApi(address, credentials) for address in dict.fromkeys(found)]
