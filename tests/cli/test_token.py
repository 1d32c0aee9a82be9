"""`skywalker token`: a secret is seen once, and a config gets nothing but its hash."""

from __future__ import annotations

import hashlib
import re
import stat
import tomllib
from pathlib import Path

import pytest

from skywalker.access.access import Access
from tests.cli.running import run
from tests.cli.terminal import on_terminal

TOKEN = re.compile(r"skw_[\w-]{43}", re.ASCII)


def hash_of(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def test_it_is_printed_once_and_the_lines_below_know_it() -> None:
    ran = run("token", "new", "web")
    assert (ran.returncode, ran.stderr) == (0, b"")
    first, _, lines = ran.stdout.decode().partition("\n\n")
    assert TOKEN.fullmatch(first)
    assert first not in lines
    access = Access.parse(tomllib.loads(lines)["access"], "access")
    known = access.by_token(first)
    assert known is not None
    assert known.name == "web"
    assert access.by_token(first + "x") is None


def test_a_file_gets_it_for_its_owner_only_and_what_is_printed_is_a_config(tmp_path: Path) -> None:
    file = tmp_path / "web.token"
    ran = run("token", "new", "web", "--file", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text()
    assert TOKEN.fullmatch(token.removesuffix("\n"))
    assert token.strip() not in ran.stdout.decode()
    assert tomllib.loads(ran.stdout.decode()) == {"access": {"web": {"token": hash_of(token.strip())}}}


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "web.token"
    file.write_text("mine")
    ran = run("token", "new", "--file", str(file))
    assert (ran.returncode, ran.stdout, file.read_text()) == (2, b"", "mine")
    assert ran.stderr.decode() == f"skywalker: {file}: cannot be written: File exists\n"


@pytest.mark.parametrize("name", ["web", 'quo"te', "web.example", "Ü" * 64])
def test_any_name_that_a_config_may_have_is_written_so_that_it_can_be_read(name: str) -> None:
    lines = run("token", "new", name).stdout.decode().partition("\n\n")[2]
    assert [*tomllib.loads(lines)["access"]] == [name]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_token_from_standard_input_is_hashed_without_the_end_of_its_line(ending: str) -> None:
    token = "skw_" + "x" * 43
    ran = run("token", "hash", stdin=f"{token}{ending}".encode())
    assert ran.stdout.decode() == f"{hash_of(token)}\n"


@pytest.mark.parametrize(
    "given", [b"", b"\n", b"hunter2", b"x" * 31, b"a b" * 20, b"\xff" * 40, b"x" * 5000, b"x" * 40 + b"\ny"]
)
def test_what_is_no_token_is_not_hashed_and_no_error_repeats_it(given: bytes) -> None:
    ran = run("token", "hash", stdin=given)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.count(b"\n") == 1
    assert not given.strip() or given.strip()[:20] not in ran.stderr


def test_a_token_that_is_typed_is_not_seen() -> None:
    token = "skw_" + "y" * 43
    with on_terminal("token", "hash") as (terminal, _):
        terminal.shows(b"token: ")
        terminal.press(f"{token}\n".encode())
        assert hash_of(token).encode() in terminal.read_to_the_end()
        assert token.encode() not in terminal.shown
