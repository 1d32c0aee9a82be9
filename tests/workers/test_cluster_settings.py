"""What a node says of settings for its cluster that are wrong, before it starts."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from skywalker.config import Cluster
from skywalker.errors import ConfigError
from tests.cli.running import run
from workers import cluster, exits

REGISTER: dict[str, Any] = {"register": True, "consul_url": "https://127.0.0.1:8501"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"join": "127.0.0.1:3443,[::1]:3443,node"},
        {"dns": "_skywalker._tcp.nodes.test"},
        {"dns": "nodes.test:3443", "dns_server": "[::1]:53"},
        {"consul": True},
        REGISTER,
        REGISTER | {"dns": "nodes.test", "consul_ca": "/ca", "consul_cert": "/cert", "consul_key": "/key"},
        {"register": True, "health_bind": "::1"},
        {"register": True, "health_bind": "localhost"},
        {"health_port": 8080, "health_bind": "::"},
        {"health_bind": "203.0.113.9"},
        {"consul_key": "/key", "consul_ca": "/ca", "service": "other"},
    ],
)
def test_what_fits_together_will_do(settings: dict[str, Any]) -> None:
    cluster.check(Cluster(**settings))


@pytest.mark.parametrize(
    ("settings", "flag", "told"),
    [
        ({"join": "a", "dns": "b"}, "--join and --dns", "one way"),
        ({"join": "a,,b"}, "--join", "missing"),
        ({"join": "dns://nodes.test"}, "--join", "host:port"),
        ({"join": "dns://nodes.test:3443"}, "--join", "host:port"),
        ({"join": "consul://127.0.0.1:8500/skywalker"}, "--join", "host:port"),
        ({"dns": "10.0.0.1"}, "--dns", "an address already"),
        ({"dns": "nodes.test", "dns_server": "ns.test:53"}, "--dns-server", "numeric"),
        ({"dns": "nodes.test", "dns_server": "127.0.0.1:0"}, "--dns-server", "host:port"),
        ({"dns_server": "127.0.0.1:53"}, "--dns-server", "--dns"),
        ({"join": "a", "dns_server": "127.0.0.1:53"}, "--dns-server", "--dns"),
        ({"consul": True, "consul_url": "127.0.0.1:8500"}, "--consul-url", "http://host"),
        ({"dns": "nodes.test", "register": True, "consul_url": "127.0.0.1"}, "--consul-url", "http://host"),
        ({"register": True, "consul_url": "127.0.0.1"}, "--consul-url", "http://host"),
        (REGISTER | {"consul_key": "/key"}, "--consul-key", "--consul-cert"),
        ({"consul": True, "consul_key": "/key"}, "--consul-key", "--consul-cert"),
        ({"consul": True, "consul_ca": "/ca"}, "--consul-ca", "https://"),
        ({"register": True, "consul_cert": "/cert"}, "--consul-cert", "https://"),
        ({"register": True, "health_bind": "203.0.113.9"}, "--health-bind", "203.0.113.9"),
        ({"health_port": 80, "health_bind": "nowhere.invalid"}, "--health-bind", "nowhere.invalid"),
        ({"health_port": 80, "health_bind": "x" * 300}, "--health-bind", "no address"),
        ({"health_port": 80, "health_bind": "[::1]"}, "--health-bind", "no address"),
    ],
)
def test_what_is_wrong_is_blamed_on_its_own_flag(settings: dict[str, Any], flag: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        cluster.check(Cluster(**settings))
    assert str(error.value).startswith(f"{flag}: ")
    assert told in str(error.value).removeprefix(flag)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [(REGISTER, "--register"), (REGISTER | {"join": "a"}, "--register"), ({"consul": True}, "--consul")],
)
def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(
    settings: dict[str, Any], flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "consul.base", None)  # type: ignore[arg-type]  # what Python itself puts there
    with pytest.raises(ConfigError) as error:
        cluster.check(Cluster(**settings))
    assert str(error.value).startswith(f"{flag}: ")
    assert "pip install 'skywalker[consul]'" in str(error.value)


def test_a_node_with_a_wrong_setting_does_not_start_and_says_why_in_a_line() -> None:
    ran = run("serve", "--port=0", "--register", "--health-bind=203.0.113.9")
    assert ran.returncode == exits.USAGE
    assert b"--health-bind: 203.0.113.9" in ran.stderr
    assert len(ran.stderr.splitlines()) <= 2
