"""Files that are not what they should be are named, and said what is wrong with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skywalker.errors import ConfigError
from skywalker.tls.contexts import client_context, own_context, server_context
from tests.authority import Authority


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> dict[str, str]:
    """Names of files, good and bad, by what they are."""
    cert, key = authority.sign("node.example", file="good")
    _, other = authority.sign("node.example", file="other")
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    os.mkfifo(tmp_path / "pipe.pem")
    return {
        "pipe": str(tmp_path / "pipe.pem"),
        "cert": cert,
        "key": key,
        "other": other,
        "rubbish": str(rubbish),
        "gone": str(tmp_path / "gone.pem"),
        "directory": str(tmp_path),
    }


@pytest.mark.parametrize(
    ("cert", "key", "named", "words"),
    [
        ("gone", "key", "gone", "No such file"),
        ("cert", "gone", "gone", "No such file"),
        ("directory", "key", "directory", "is not a regular file"),
        ("pipe", "key", "pipe", "is not a regular file"),
        ("rubbish", "", "rubbish", "holds no certificate with its key"),
        ("cert", "", "cert", r"holds no key: .* tls_key \(--tls-key\)$"),
        ("cert", "rubbish", "rubbish", "hold no certificate with its key"),
        ("cert", "other", "other", "the key of another certificate"),
    ],
)
def test_a_bad_file_is_named(files: dict[str, str], cert: str, key: str, named: str, words: str) -> None:
    for make in (server_context, client_context, own_context):
        arguments = (files[cert], files.get(key, ""))
        with pytest.raises(ConfigError, match=words) as error:
            make("", *arguments) if make is client_context else make(*arguments)
        assert files[named] in str(error.value)
        assert "_ssl.c" not in str(error.value)


@pytest.mark.parametrize("bad", ["gone", "rubbish"])
def test_so_is_one_that_should_hold_authorities(files: dict[str, str], bad: str) -> None:
    with pytest.raises(ConfigError, match="authorit") as error:
        client_context(files[bad])
    assert files[bad] in str(error.value)
    with pytest.raises(ConfigError, match="authorit"):
        server_context(files["cert"], files["key"], files[bad])


def test_a_node_that_speaks_to_itself_reads_no_authorities(files: dict[str, str]) -> None:
    assert own_context(files["cert"], files["key"]).cert_store_stats()["x509"] == 0


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(files: dict[str, str], tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(Path(files["key"]).read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match="without a password"):
        server_context(files["cert"], os.fspath(locked))
