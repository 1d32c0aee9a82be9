"""`skywalker token`: the secrets by which programs show a node who they are, and the files that hold such."""

from __future__ import annotations

import getpass
import json
import os
import re
from pathlib import Path
from typing import Final

import click

from skywalker.access.access import ANYONE, MAX_NAME, is_name
from skywalker.access.token import MAX_BYTES, hash_of
from skywalker.access.token import new as new_token
from skywalker.cli import exits, terminal
from skywalker.cli.options import standard_input
from skywalker.errors import ConfigError

SECRET: Final = 0o600
"""Only its owner may read it."""

PUBLIC: Final = 0o644


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file whole or not at all. Raises ConfigError, also if it is there."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with open(file, "wb") as out:
            out.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


SHORTEST: Final = 32
"""Characters below which whoever reads the hash of a token could find it by trying."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@click.group(short_help="Make secrets for programs")
def token() -> None:
    """A token tells a node which program is calling. The node's config holds only the hash of the token.

    \b
      skywalker token new web --file web.token >>skywalker.toml      give the file to the program web
      skywalker ping --token-file web.token                          calls as web
    """


@token.command(short_help="Make a token for a program")
@click.argument("name", default="client")
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="write the token there, readable only by you"
)
def new(name: str, file: Path | None) -> int:
    """Make a token for the program NAME, and print the lines of the config by which nodes know it.

    The token itself is printed first, and is not stored anywhere. With --file it is written to FILE instead, which must
    not exist yet.
    """
    if not is_name(name) or name == ANYONE:
        raise click.UsageError(f"{name!r} is not a name of 1 to {MAX_NAME} characters, or it is {ANYONE!r}")
    made = new_token()
    if file is not None:
        write_new(file, f"{made}\n".encode(), SECRET)
    terminal.write(((f"{made}\n\n" if file is None else "") + _lines(name, made)).encode())
    return exits.OK


@token.command(short_help="Print the hash of a token")
def hash() -> int:
    """Print the hash of the token on standard input, as the config of a node has it."""
    terminal.write(f"{hash_of(_given())}\n".encode())
    return exits.OK


def table(name: str) -> str:
    """Return the line with which a config begins to say who `name` is."""
    return f"[access.{name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)}]"


def _lines(name: str, made: str) -> str:
    return (
        f"{table(name)}\n"
        f'token = "{hash_of(made)}"\n'
        '#send = ["topic", "prefix/*"]     # what it may do, and where: send, recv, publish, subscribe\n'
    )


def _given() -> str:
    """Return the token that is typed in, unseen, or piped in. Raises ConfigError; no error says what it was."""
    if os.isatty(0):
        text = getpass.getpass("token: ")
    else:
        data = b""
        for chunk in standard_input():
            data += chunk
            if len(data) > MAX_BYTES:
                raise ConfigError(f"a token has at most {MAX_BYTES} bytes")
        try:
            text = data.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise ConfigError("what comes from standard input is not text") from error
    if not text.isprintable() or " " in text:
        raise ConfigError("a token is one word")
    if len(text) < SHORTEST:
        raise ConfigError(
            f"a token of less than {SHORTEST} characters could be guessed from its hash: "
            "have skywalker token new make one"
        )
    return text
