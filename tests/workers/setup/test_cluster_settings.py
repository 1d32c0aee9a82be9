"""What a node says of settings for its cluster that are wrong, before it starts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from skywalker import extras
from skywalker.config import Cluster
from skywalker.errors import ConfigError
from workers.setup import cluster

REGISTER: dict[str, Any] = {"register": True, "consul_url": "https://127.0.0.1:8501"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"join": "127.0.0.1:3443,[::1]:3443,node"},
        {"dns": "_skywalker._tcp.nodes.test"},
        {"dns": "nodes.test:3443", "dns_server": "[::1]:53"},
        {"silk": "127.0.0.1"},
        {"silk": "0.0.0.0:3444", "silk_pub": "0.0.0.0:3445", "silk_join": "a,b:4000,[::1]:3444,tcp://c:1,ipc:///d"},
        {"silk": "tcp://*:0", "silk_pub": "tcp://[::1]:*"},
        {"silk": "ipc:///tmp/silk", "silk_pub": "127.0.0.1:3445", "silk_join": "ipc:///tmp/other"},
        {"silk": "[::]:3444"} | REGISTER,
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
        ({"silk": "127.0.0.1", "join": "a"}, "--silk and --join", "one way"),
        ({"silk": "127.0.0.1", "dns": "a", "consul": True}, "--silk and --dns and --consul", "one way"),
        ({"silk": "127.0.0.1:x"}, "--silk", "host:port"),
        ({"silk": "127.0.0.1:0"}, "--silk", "host:port"),
        ({"silk": "udp://127.0.0.1:3444"}, "--silk", "tcp://host:port or ipc:///path"),
        ({"silk": "tcp://127.0.0.1"}, "--silk", "tcp://host:port"),
        ({"silk": "tcp://127.0.0.1:70000"}, "--silk", "tcp://host:port"),
        ({"silk": "ipc://"}, "--silk", "ipc:///path"),
        ({"silk": "localhost:3444"}, "--silk", "numeric"),
        ({"silk": "203.0.113.9:3444"}, "--silk", "203.0.113.9 is not an address of this machine"),
        ({"silk": "127.0.0.1", "silk_pub": "127.0.0.1:x"}, "--silk-pub", "host:port"),
        ({"silk": "127.0.0.1", "silk_pub": "tcp://203.0.113.9:0"}, "--silk-pub", "is not an address of this machine"),
        ({"silk": "127.0.0.1", "silk_join": "a,,b"}, "--silk-join", "missing"),
        ({"silk": "127.0.0.1", "silk_join": "a:x"}, "--silk-join", "host:port"),
        ({"silk": "127.0.0.1", "silk_join": "0.0.0.0:3444"}, "--silk-join", "nowhere in particular"),
        ({"silk": "127.0.0.1", "silk_join": "tcp://a:0"}, "--silk-join", "nowhere in particular"),
        ({"silk": "127.0.0.1", "silk_join": "silk://a:3444"}, "--silk-join", "tcp://host:port or ipc:///path"),
        ({"silk": "127.0.0.1", "silk_keys": "/no/such/file"}, "--silk-keys", "No such file"),
        ({"silk": "127.0.0.1", "silk_keys": "/dev/null"}, "--silk-keys", "skywalker silk keygen"),
        ({"silk_pub": "127.0.0.1"}, "--silk-pub", "--silk"),
        ({"silk_join": "a"}, "--silk-join", "--silk"),
        ({"silk_keys": "/keys", "join": "a"}, "--silk-keys", "--silk"),
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
        ({"health_port": 80, "health_bind": "x" * 300}, "--health-bind", "is not an address"),
        ({"health_port": 80, "health_bind": "[::1]"}, "--health-bind", "is not an address"),
    ],
)
def test_what_is_wrong_is_blamed_on_its_own_flag(settings: dict[str, Any], flag: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        cluster.check(Cluster(**settings))
    assert str(error.value).startswith(f"{flag}: ")
    assert told in str(error.value).removeprefix(flag)


@pytest.mark.parametrize(
    ("settings", "flag", "module", "extra"),
    [
        (REGISTER, "--register", "consul.base", "consul"),
        (REGISTER | {"join": "a"}, "--register", "consul.base", "consul"),
        ({"consul": True}, "--consul", "consul.base", "consul"),
        ({"silk": "127.0.0.1"}, "--silk", "zmq", "silk"),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(
    settings: dict[str, Any], flag: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]  # what Python itself puts there
    with pytest.raises(ConfigError) as error:
        cluster.check(Cluster(**settings))
    assert str(error.value).startswith(f"{flag}: ")
    assert extras.command_for(extra) in str(error.value)


def test_settings_are_checked_without_zeromq_which_no_process_that_forks_may_have() -> None:
    program = """
import sys
from skywalker.config import Cluster
from workers.setup import cluster
cluster.check(Cluster(silk="127.0.0.1:3444", silk_join="a:3444"))
assert not any(name.partition(".")[0] == "zmq" for name in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
