"""`skywalker certs`: certificates for trying TLS out."""

from __future__ import annotations

import json
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from skywalker import extras, own_directory
from skywalker.cli import exits, terminal
from skywalker.cli.token import PUBLIC, SECRET, table, write_new
from skywalker.errors import ConfigError

if TYPE_CHECKING:
    from skywalker.tls.authority import Authority, Pair

DAYS: Final = 30
"""How long a certificate counts, unless told otherwise: what is forgotten somewhere does no harm for long."""

AUTHORITY_DAYS: Final = 365
"""How long the authority does, at least."""

_CA, _NODE = "ca", "node"


@click.command(short_help="Make certificates for trying TLS out")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--name", "names", multiple=True, metavar="HOST", help="a name or address of the node; may be repeated")
@click.option("--client", "clients", multiple=True, metavar="NAME", help="make one for a client, too; may be repeated")
@click.option(
    "--days",
    type=click.IntRange(1, 825),
    default=DAYS,
    show_default=True,
    metavar="N",
    help="days for which they are valid",
)
def certs(directory: Path, names: tuple[str, ...], clients: tuple[str, ...], days: int) -> int:
    """Make an authority in DIR, a certificate for nodes, and one for each client.

    If DIR has an authority, it signs the new certificates. Nothing is overwritten: to renew a certificate, remove it
    and its key first. Nodes notice new files, and need no restart. Without --name, the node's certificate is for
    localhost and the name of this machine.

    This is for trying TLS out: a certificate cannot be revoked, except by letting it expire or by changing the
    authority that all nodes trust. Needs the package cryptography, which skywalker's extra `certs` installs.
    """
    if extras.missing(extras.CERTS):
        raise ConfigError(f"the package cryptography is missing: {extras.command_for('certs')}")
    from skywalker.tls.authority import Authority  # only now: it is loaded slowly, and not always there

    for client in clients:
        _check_client(directory, client)
    has_authority, has_node = _is_there(directory, _CA), _is_there(directory, _NODE)
    if has_node and names:
        raise ConfigError(f"{directory / _NODE}.pem is there: to have it made for other names, remove it and its key")
    authority = _loaded(directory) if has_authority else Authority.new(max(days, AUTHORITY_DAYS))
    made = [] if has_authority else [(_CA, authority.pair())]
    if not has_node:
        made.append((_NODE, authority.for_node(names or _usual_names(), days)))
    made += [(f"client-{client}", authority.for_client(client, days)) for client in dict.fromkeys(clients)]
    _make(directory)
    for stem, pair in made:
        _save(directory, stem, pair)
    terminal.say(_told(directory, made, clients))
    return exits.OK


def _check_client(directory: Path, client: str) -> None:
    from skywalker.tls.authority import is_name

    if not is_name(client) or "*" in client:
        raise click.UsageError(f"--client: {client!r} is not a name of at most 62 letters, digits, '.', '-' and '_'")
    if _is_there(directory, f"client-{client}"):
        raise ConfigError(f"{directory}/client-{client}.pem is there: to have it made anew, remove it and its key")


def _is_there(directory: Path, stem: str) -> bool:
    """Whether there are a certificate and its key of that name. Raises ConfigError if one of them is missing."""
    certificate, key = directory / f"{stem}.pem", directory / f"{stem}.key"
    if certificate.exists() != key.exists():
        there, missing = (certificate, key) if certificate.exists() else (key, certificate)
        raise ConfigError(f"{there} is there and {missing.name} is not: put them together, or remove what is left")
    return certificate.exists()


def _loaded(directory: Path) -> Authority:
    from skywalker.tls.authority import Authority

    try:
        return Authority.load((directory / f"{_CA}.pem").read_bytes(), (directory / f"{_CA}.key").read_bytes())
    except OSError as error:
        raise ConfigError(f"{directory / _CA}.pem and .key: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{directory / _CA}.pem and .key are not an authority that can sign: {error}: use another directory"
        ) from error


def _usual_names() -> Sequence[str]:
    from skywalker.tls.authority import is_name

    own = socket.gethostname()
    names = ["localhost", "127.0.0.1", "::1"]
    return [*names, own] if is_name(own) and own not in names else names


def _make(directory: Path) -> None:
    try:
        own_directory.make(directory)
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be made: {error.strerror}") from error


def _save(directory: Path, stem: str, pair: Pair) -> None:
    write_new(directory / f"{stem}.key", pair.key, SECRET)
    write_new(directory / f"{stem}.pem", pair.certificate, PUBLIC)


_SUBJECTS: Final = {
    _CA: "the authority; whoever has its key can make a certificate for any name, so keep it here",
    _NODE: "for nodes at ",
}


def _told(directory: Path, made: Sequence[tuple[str, Pair]], clients: Sequence[str]) -> str:
    lines = []
    for stem, pair in made:
        subject = _SUBJECTS.get(stem, "for the client ") + ", ".join(pair.names)
        lines.append(f"made {directory / stem}.pem and .key, until {pair.ends:%Y-%m-%d}: {subject}")
    at = directory.absolute()
    cert, key, ca = (json.dumps(f"{at}/{file}", ensure_ascii=False) for file in ("node.pem", "node.key", "ca.pem"))
    lines += ["", "in the config of a node, where without [access] only who shows a certificate gets in:"]
    lines += [f"  tls_cert = {cert}", f"  tls_key = {key}", f"  tls_ca = {ca}"]
    lines += [
        "",
        "on the command line, and in a program:" if clients else "in a client (--client NAME makes what it shows):",
    ]
    arguments, shows = f"--tls-ca {shlex.quote(f'{at}/ca.pem')}", []
    if clients:
        own = [f"{at}/client-{clients[0]}.{kind}" for kind in ("pem", "key")]
        arguments += f" --tls-cert {shlex.quote(own[0])} --tls-key {shlex.quote(own[1])}"
        shows = [f"  tls.load_cert_chain({own[0]!r}, {own[1]!r})"]
        lines[-1:-1] = [f"  {table(clients[0])}", f"  certificate = {json.dumps(clients[0])}", ""]
    lines += [f"  skywalker ping --node skywalkers://localhost {arguments}"]
    lines += [f"  tls = ssl.create_default_context(cafile={ca})", *shows]
    lines += ['  junction = skywalker.connect("skywalkers://localhost", tls=tls)']
    return "".join(f"{line}\n" for line in lines)
