"""Consul by TLS, with an authority made for the test: both sides show who they are, or nothing is said."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.discovery.consul import ConsulAccess, ConsulSource
from skywalker.discovery.url import source_of
from skywalker.errors import DiscoveryError
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority, and certificates of a server and a client by it."""
    consul_agent.require()
    directory = tmp_path_factory.mktemp("tls")
    for command in ("ca create", "cert create -server", "cert create -client"):
        arguments = [str(consul_agent.program()), "tls", *command.split()]
        subprocess.run(arguments, cwd=directory, check=True, capture_output=True, timeout=30)
    return directory


@pytest.fixture(scope="module")
def agent(files: Path) -> Iterator[ConsulAgent]:
    settings = {
        "ca_file": str(files / "consul-agent-ca.pem"),
        "cert_file": str(files / "dc1-server-consul-0.pem"),
        "key_file": str(files / "dc1-server-consul-0-key.pem"),
        "verify_incoming_https": True,
    }
    with ConsulAgent(settings) as agent:
        agent.ask("/v1/agent/service/register", {"Name": "skywalker", "Address": "::1", "Port": 3443}, method="PUT")
        yield agent


@pytest.fixture
def access(agent: ConsulAgent, files: Path) -> ConsulAccess:
    """All that it takes."""
    return ConsulAccess.parse(
        f"https://{agent.tls_address}",
        ca_file=str(files / "consul-agent-ca.pem"),
        cert_file=str(files / "dc1-client-consul-0.pem"),
        key_file=str(files / "dc1-client-consul-0-key.pem"),
    )


def found(access: ConsulAccess) -> list[str]:
    return sorted(map(str, ConsulSource(access, "skywalker").addresses()))


def test_with_an_authority_and_a_certificate_all_is_as_without_tls(access: ConsulAccess) -> None:
    assert found(access) == ["[::1]:3443"]
    url = f"consul://{access.address}/skywalker?tls=true&ca={access.ca_file}"
    source = source_of(f"{url}&cert={access.cert_file}&key={access.key_file}")
    assert source.look().addresses == source.addresses()
    assert sorted(map(str, source.addresses())) == ["[::1]:3443"]


def test_a_consul_of_an_unknown_authority_is_not_believed(access: ConsulAccess) -> None:
    with pytest.raises(DiscoveryError, match="certificate verify failed"):
        found(dataclasses.replace(access, ca_file=""))


def test_without_an_authority_of_its_own_those_of_the_system_are_believed(
    access: ConsulAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", access.ca_file)
    assert found(dataclasses.replace(access, ca_file="")) == ["[::1]:3443"]


def test_a_client_without_a_certificate_is_turned_away(access: ConsulAccess) -> None:
    with pytest.raises(DiscoveryError, match="https://"):
        found(dataclasses.replace(access, cert_file="", key_file=""))


def test_a_consul_that_is_known_by_another_name_is_not_believed(access: ConsulAccess) -> None:
    elsewhere = dataclasses.replace(access.address, host="127.0.0.2")
    with pytest.raises(DiscoveryError):
        found(dataclasses.replace(access, address=elsewhere))


def test_tls_where_none_is_spoken_is_an_error_and_so_is_the_reverse(agent: ConsulAgent, access: ConsulAccess) -> None:
    with pytest.raises(DiscoveryError, match="https://"):
        found(dataclasses.replace(access, address=agent.address))
    with pytest.raises(DiscoveryError, match="http://"):
        found(ConsulAccess(agent.tls_address))


@pytest.mark.parametrize("which", ["ca_file", "cert_file", "key_file"])
@pytest.mark.parametrize("content", [None, "no PEM"])
def test_files_that_are_missing_or_broken_are_named(
    access: ConsulAccess, tmp_path: Path, which: str, content: str | None
) -> None:
    broken = tmp_path / "broken.pem"
    if content is not None:
        broken.write_text(content)
    with pytest.raises(DiscoveryError, match=str(broken)):
        found(dataclasses.replace(access, **{which: str(broken)}))


def test_a_certificate_that_was_renewed_in_place_is_used_without_a_restart(
    access: ConsulAccess, tmp_path: Path
) -> None:
    certificate = tmp_path / "client.pem"
    certificate.write_text("not there yet")
    source = ConsulSource(dataclasses.replace(access, cert_file=str(certificate)), "skywalker")
    with pytest.raises(DiscoveryError):
        source.look()
    certificate.write_bytes(Path(access.cert_file).read_bytes())
    assert len(source.look().addresses) == 1
