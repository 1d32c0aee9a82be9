"""What certificates say, and which of them no client takes."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from skywalker.errors import ConfigError
from skywalker.tls import authority
from skywalker.tls.certificate import Certificate, fault_of
from skywalker.tls.contexts import server_context

DAY_S = 86_400


def written(directory: Path, pair: authority.Pair) -> tuple[str, str]:
    """Return the files of a certificate and of its key."""
    for name, content in (("it.pem", pair.certificate), ("it.key", pair.key)):
        (directory / name).write_bytes(content)
    return str(directory / "it.pem"), str(directory / "it.key")


def test_its_names_and_times_are_told(tmp_path: Path) -> None:
    cert, key = written(tmp_path, authority.Authority.new(9).for_node(["a.example", "b.example", "127.0.0.1"], 3))
    found = Certificate.read(cert, key)
    assert found.names == ("a.example", "b.example")
    assert abs(found.good_until - time.time() - 3 * DAY_S) < 60
    assert found.fault(found.good_until - 1) == "" == fault_of(cert, key)
    assert found.fault(found.good_until + 1).startswith("expired on 20")
    assert found.fault(found.good_from - 1).startswith("is good only from 20")


def test_one_with_its_key_and_what_comes_after_it_in_one_file_is_read(tmp_path: Path) -> None:
    signer = authority.Authority.new(9)
    pair = signer.for_node(["a"], 3)
    file = tmp_path / "all.pem"
    file.write_bytes(pair.key + pair.certificate + signer.pair().certificate)
    assert Certificate.read(str(file)).names == ("a",)


def test_one_that_has_expired_is_told_of_by_its_date(tmp_path: Path) -> None:
    cert, key = written(tmp_path, authority.Authority.new(9).for_node(["a"], 0))
    until = time.strftime("%Y-%m-%d", time.gmtime())
    assert fault_of(cert, key).startswith(f"the certificate in {cert} expired on {until}")


def test_one_for_clients_is_none_that_a_node_could_show(tmp_path: Path) -> None:
    cert, key = written(tmp_path, authority.Authority.new(9).for_client("web", 3))
    with pytest.raises(ConfigError, match="no client takes this certificate: unsuit"):
        Certificate.read(cert, key)


@pytest.mark.parametrize("then", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n", None, "another"])
def test_one_that_is_just_being_replaced_is_no_more_than_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: bytes | str | None
) -> None:
    cert, key = written(tmp_path, authority.Authority.new(9).for_node(["a"], 3))

    def replaced_once_read(*files: str) -> ssl.SSLContext:
        context = server_context(*files)
        if then is None:
            Path(cert).unlink()
        elif isinstance(then, bytes):
            Path(cert).write_bytes(then)
        else:
            Path(cert).write_bytes(authority.Authority.new(9).for_node(["a"], 3).certificate)
        return context

    monkeypatch.setattr("skywalker.tls.certificate.server_context", replaced_once_read)
    with pytest.raises(ConfigError):
        Certificate.read(cert, key)


def test_what_is_told_is_what_clients_do(tmp_path: Path) -> None:
    """The check made here is OpenSSL's own: a context that looks at the time refuses the same."""
    for days in (0, 1):
        cert, key = written(tmp_path, authority.Authority.new(9).for_node(["a"], days))
        client = ssl.create_default_context(cafile=cert)
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        assert bool(fault_of(cert, key)) is (not shakes_hands(client, cert, key))


def shakes_hands(client: ssl.SSLContext, cert: str, key: str) -> bool:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(cert, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="a"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return ends[0].getpeercert() is not None
