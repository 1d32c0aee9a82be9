"""`skywalker certs`: what it makes holds in a handshake, and nothing that is there is lost."""

from __future__ import annotations

import socket
import ssl
import stat
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from skywalker.tls.contexts import client_context, server_context
from tests.cli.running import SKYWALKER, environment, run


def made(directory: Path, *arguments: str) -> str:
    ran = run("certs", str(directory), *arguments)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout.decode()


def refused(directory: Path, *arguments: str) -> str:
    before = contents(directory)
    ran = run("certs", str(directory), *arguments)
    assert (ran.returncode, ran.stdout) == (2, b""), ran
    assert contents(directory) == before
    return ran.stderr.decode()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*")}


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str
) -> tuple[dict[str, object], dict[str, object]]:
    """Connect one to the other; return the certificates that each of them is shown. Raises what the client does."""
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    ours, theirs = socket.socketpair()
    shown: list[dict[str, object]] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as end:
                shown.append(end.getpeercert() or {})
                end.send(b"welcome")
                end.recv(1)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=host) as end:
            assert end.recv(7) == b"welcome"  # with TLS 1.3 the server has judged us only then
            return end.getpeercert() or {}, shown[0]
    finally:
        ours.close()
        thread.join()


def test_nodes_and_clients_know_each_other_by_what_is_made(tmp_path: Path) -> None:
    made(tmp_path, "--client", "web.example")
    ca = str(tmp_path / "ca.pem")
    node = server_context(str(tmp_path / "node.pem"), str(tmp_path / "node.key"), ca, required=True)
    client = client_context(ca, str(tmp_path / "client-web.example.pem"), str(tmp_path / "client-web.example.key"))
    for host in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
        _, shown = shake_hands(node, client, host)
        assert shown["subjectAltName"] == (("DNS", "web.example"),)
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        shake_hands(node, client, "elsewhere")
    # Nodes connect to one another with what they show to clients.
    other = client_context(ca, str(tmp_path / "node.pem"), str(tmp_path / "node.key"))
    _, shown = shake_hands(node, other, "127.0.0.1")
    assert ("DNS", "localhost") in shown["subjectAltName"]  # type: ignore[operator]


def test_a_client_cannot_pass_for_a_node(tmp_path: Path) -> None:
    made(tmp_path, "--client", "localhost")
    false = server_context(str(tmp_path / "client-localhost.pem"), str(tmp_path / "client-localhost.key"))
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shake_hands(false, client_context(str(tmp_path / "ca.pem")), "localhost")


def test_keys_are_for_their_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    script = 'umask 0; exec "$@"'
    program = [SKYWALKER, "certs", str(tmp_path / "new"), "--client", "web"]
    subprocess.run(["sh", "-c", script, "sh", *program], env=environment(), check=True, stdout=subprocess.DEVNULL)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {
        f"{stem}.{kind}": mode
        for stem in ("ca", "node", "client-web")
        for kind, mode in (("pem", 0o644), ("key", 0o600))
    }
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_what_is_there_signs_what_is_added_and_stays_as_it_is(tmp_path: Path) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    said = made(tmp_path, "--client", "a", "--client", "b", "--client", "a")
    after = contents(tmp_path)
    assert before == {name: after[name] for name in before}
    assert after.keys() - before.keys() == {f"client-{name}.{kind}" for name in "ab" for kind in ("pem", "key")}
    assert "node.pem and" not in said
    authority = certificate(tmp_path / "ca.pem")
    for name in "ab":
        certificate(tmp_path / f"client-{name}.pem").verify_directly_issued_by(authority)


def test_nothing_is_overwritten_and_then_nothing_else_is_made(tmp_path: Path) -> None:
    made(tmp_path, "--client", "a")
    assert "client-a.pem is there" in refused(tmp_path, "--client", "b", "--client", "a")
    assert "node.pem is there" in refused(tmp_path, "--name", "other", "--client", "b")
    (tmp_path / "node.key").unlink()
    assert "node.pem is there and node.key is not" in refused(tmp_path, "--client", "b")
    (tmp_path / "node.pem").unlink()
    made(tmp_path, "--name", "other", "--name", "192.0.2.1")
    names = certificate(tmp_path / "node.pem").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["other"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.1"]


def test_a_link_is_not_followed_to_a_file_that_others_read(tmp_path: Path) -> None:
    (tmp_path / "node.key").symlink_to(tmp_path / "elsewhere")
    assert "node.key: cannot be written" in run("certs", str(tmp_path)).stderr.decode()
    assert not (tmp_path / "elsewhere").exists()


def test_they_end_soon_and_none_after_the_authority(tmp_path: Path) -> None:
    made(tmp_path, "--client", "a")
    made(tmp_path, "--client", "b", "--days", "825")
    now = datetime.now(UTC)

    def days(name: str) -> float:
        return (certificate(tmp_path / name).not_valid_after_utc - now) / timedelta(days=1)

    assert days("node.pem") == pytest.approx(30, abs=0.1)
    assert days("client-a.pem") == pytest.approx(30, abs=0.1)
    assert days("ca.pem") == pytest.approx(365, abs=0.1)
    assert days("client-b.pem") == days("ca.pem")
    assert all(certificate(path).not_valid_before_utc < now for path in tmp_path.glob("*.pem"))


def test_what_is_no_authority_signs_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    kept = contents(tmp_path)
    (tmp_path / "ca.key").write_bytes(kept["node.key"])
    assert "the key is not that of the certificate" in refused(tmp_path, "--client", "a")
    (tmp_path / "ca.pem").write_bytes(kept["node.pem"])
    assert "not one that signs for itself" in refused(tmp_path, "--client", "a")
    for text in (b"", b"-----BEGIN CERTIFICATE-----\n", kept["ca.pem"][:200]):
        (tmp_path / "ca.pem").write_bytes(text)
        assert "are not an authority that can sign" in refused(tmp_path, "--client", "a")


@pytest.mark.parametrize(
    "arguments", [["--client=../up"], ["--client="], ["--client=*.a"], ["--name=a b"], ["--name="]]
)
def test_for_a_wrong_name_nothing_is_made(tmp_path: Path, arguments: list[str]) -> None:
    refused(tmp_path / "new", *arguments)
    assert not (tmp_path / "new").exists()


def test_what_it_says_to_put_into_a_config_is_good_for_one(tmp_path: Path) -> None:
    said = made(tmp_path, "--client", "web.example")
    lines = [line.strip() for line in said.splitlines() if line.startswith(("  tls_", "  [access", "  certificate"))]
    (tmp_path / "node.toml").write_text("".join(f"{line}\n" for line in lines))
    ran = run("check", "-v", str(tmp_path / "node.toml"))
    assert ran.returncode == 0, ran.stderr
    assert f"tls_key = {tmp_path}/node.key" in ran.stdout.decode()
    assert "BEGIN" not in said
