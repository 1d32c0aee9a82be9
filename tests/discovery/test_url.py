"""How a cluster is written down: every form that is allowed, and for every other one an error that names them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skywalker import extras
from skywalker.address import Address
from skywalker.discovery.consul import ConsulAccess
from skywalker.discovery.url import FORMS, asks_for_tls, source_of
from skywalker.errors import DiscoveryError, LocalProtocolError
from skywalker.limits import DEFAULT_ADDRESS


def addresses(text: str) -> list[str]:
    return sorted(map(str, source_of(text).addresses()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:3443", ["a:3443"]),
        ("a:3443,b:3444", ["a:3443", "b:3444"]),
        (" a , b:4000 ", ["a:3443", "b:4000"]),
        ("a,a:3443", ["a:3443"]),
        ("[::1]:4000,::2,10.0.0.1", ["10.0.0.1:3443", "[::1]:4000", "[::2]:3443"]),
        (":4000", ["127.0.0.1:4000"]),
        ("skywalkers://a", ["a:3443"]),
        ("SkyWalkers://a:1,b/", ["a:1", "b:3443"]),
        (" skywalkers://[::1]:4000, 10.0.0.1 ", ["10.0.0.1:3443", "[::1]:4000"]),
        ("unix:///run/a,b:1?c", ["unix:///run/a,b:1?c"]),
        ("Unix:///run/a", ["unix:///run/a"]),
    ],
)
def test_a_list_of_addresses(text: str, expected: list[str]) -> None:
    assert addresses(text) == expected
    assert source_of(text).look().pause_s is None


@pytest.mark.parametrize(
    "text", ["", ",", "a,", ",a", "a,,b", "a:0", "a:b", "a:70000", "a b:c:d", "a;b:1:2", "a:1,[::1"]
)
def test_what_is_no_list_of_addresses_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(LocalProtocolError, match=DEFAULT_ADDRESS):
        source_of(text)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("dns://nodes.test:3443", "DNS name nodes.test"),
        ("dns://nodes.test/", "DNS name nodes.test"),
        ("DNS://nodes.test?server=127.0.0.1:5353", "DNS name nodes.test of 127.0.0.1:5353"),
        ("dns://nodes.test?server=127.0.0.1", "DNS name nodes.test of 127.0.0.1:53"),
        ("dns://nodes.test?server=::1", "DNS name nodes.test of [::1]:53"),
        ("dns://nodes.test?server=[::1]:5353", "DNS name nodes.test of [::1]:5353"),
        ("dns://_skywalker._tcp.nodes.test", "DNS name _skywalker._tcp.nodes.test"),
        ("silk://host", "Silk at host:3444"),
        ("SILK://host:1,10.0.0.1, [::1]:3,tcp://b:4,ipc:///c", "Silk at host:1,10.0.0.1:3444,[::1]:3,b:4,ipc:///c"),
        ("silk://host:3444/", "Silk at host:3444"),
        ("silk://ipc:///run/a", "Silk at ipc:///run/a"),
        ("silk://a,b:3444,a:3444", "Silk at a:3444,b:3444"),
        ("silk://host:3444?keys=/etc/s3cret", "Silk at host:3444"),
        ("consul://host/skywalker", "Consul at http://host:8500, service skywalker"),
        ("consul://host:1/sky%20walker", "Consul at http://host:1, service sky walker"),
        ("consul://[::1]:8500/skywalker?token=s3cret", "Consul at http://[::1]:8500, service skywalker"),
        ("consul://host/skywalker?tls=true&ca=/a&cert=/b&key=/c", "Consul at https://host:8501, service skywalker"),
        ("consul://host/skywalker?tls=false", "Consul at http://host:8500, service skywalker"),
    ],
)
def test_a_url_of_what_knows_the_nodes(url: str, text: str) -> None:
    assert str(source_of(url)) == text


@pytest.mark.parametrize(
    "url",
    [
        "http://host:3443",
        "skywalkers://",
        "skywalkers://me:s3cret@host",
        "skywalkers://host?token=s3cret",
        "skywalkers://host/path",
        "skywalkers://a,,b",
        "skywalkers://a:0",
        "unix://",
        "unix://run/a",
        "dns://",
        "dns://:3443",
        "dns://nodes.test:port",
        "dns://nodes.test:0",
        "consul://host:0/a",
        "dns://[::1",
        "dns://10.0.0.1:3443",
        "dns://nodes.test/path",
        "dns://me@nodes.test",
        "dns://_skywalker._tcp.nodes.test:3443",
        "dns://nodes.test?server=",
        "dns://nodes.test?server=ns.test:53",
        "dns://nodes.test?server=127.0.0.1:0",
        "dns://nodes.test?server=127.0.0.1&server=127.0.0.2",
        "dns://nodes.test?sever=127.0.0.1",
        "silk://",
        "silk://a,,b",
        "silk://host:0",
        "silk://host/path:1",
        "silk://me:s3cret@host",
        "silk://0.0.0.0:3444",
        "silk://tcp://a:0",
        "silk://udp://a:1",
        "silk://host?key=s3cret",
        "silk://host?keys=/a&keys=/s3cret",
        "consul://",
        "consul://host",
        "consul://host/a/b",
        "consul://host:s3cret/a",
        "consul://me:s3cret@host/a",
        "consul://host/a?tokn=s3cret",
        "consul://host/a?token=s3cret&token=s3cret",
        "consul://host/a?token=s3cret&ca=/file",
        "consul://host/a?token=s3cret&tls=false&cert=/file",
        "consul://host/a?token=s3cret&tls=true&key=/file",
        "consul://[::1/a?token=s3cret",
        "consul:/host/a?token=s3cret",
        "me:s3cret@host:1",
    ],
)
def test_any_other_url_is_an_error_that_tells_no_secret(url: str) -> None:
    with pytest.raises(LocalProtocolError) as error:
        source_of(url)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("skywalkers://a", True),
        (" SKYWALKERS://a,b", True),
        ("a:3443", False),
        ("skywalkers", False),
        ("dns://skywalkers://a", False),
        ("unix:///skywalkers://", False),
    ],
)
def test_one_form_asks_for_tls(text: str, answer: bool) -> None:
    assert asks_for_tls(text) is answer


@pytest.mark.parametrize("url", ["http://host:3443", "dns://nodes.test/path", "consul://host", "silk://"])
def test_an_error_names_the_forms_that_are_allowed(url: str) -> None:
    with pytest.raises(LocalProtocolError) as error:
        source_of(url)
    assert all(form in str(error.value) for form in FORMS)


@pytest.mark.parametrize("unknown", ["sever=1", "server=127.0.0.1&x=1"])
def test_an_option_that_is_unknown_is_named_and_so_are_those_there_are(unknown: str) -> None:
    with pytest.raises(LocalProtocolError, match=r"(sever|x); there are server"):
        source_of(f"dns://nodes.test?{unknown}")


@pytest.mark.parametrize(
    ("url", "address", "tls"),
    [
        ("http://host", Address("host", 8500), False),
        ("http://host:1/", Address("host", 1), False),
        ("https://host", Address("host", 8501), True),
        ("https://[::1]:2", Address("::1", 2), True),
    ],
)
def test_the_url_of_a_consul_that_a_node_registers_with(url: str, address: Address, tls: bool) -> None:
    access = ConsulAccess.parse(url, token="s3cret", ca_file="/ca")
    assert access == ConsulAccess(address, tls, "s3cret", "/ca")
    assert "s3cret" not in f"{access} {access!r}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8500",
        "consul://host",
        "http://",
        "http://host:x",
        "http://host:0",
        "http://host/ui",
        "http://a:b@host",
        "http://h?a=b",
    ],
)
def test_what_is_no_url_of_a_consul_is_an_error_that_shows_one(url: str) -> None:
    with pytest.raises(LocalProtocolError, match="http://host:8500 or https://host:8501"):
        ConsulAccess.parse(url)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("dns://nodes.test", "dns.resolver", "dns"),
        ("consul://host/skywalker", "consul.base", "consul"),
        ("silk://host", "zmq", "silk"),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]  # what Python itself puts there
    with pytest.raises(DiscoveryError) as error:
        source_of(url).addresses()
    assert str(error.value).endswith(f": {extras.command_for(extra)}")


def test_what_is_not_used_is_not_loaded() -> None:
    program = """
import sys
from skywalker.discovery.url import source_of
source_of("a:3443,b:3443").addresses()
heavy = {"dns", "consul", "requests", "http.client", "ssl", "socket", "zmq"} & sys.modules.keys()
assert not heavy, heavy
source_of("dns://nodes.test")
heavy = {"consul", "requests", "zmq"} & sys.modules.keys()
assert not heavy, heavy
source_of("silk://nodes.test")
assert "zmq" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("scheme", ["https", "skywalker", "tcp"])
@pytest.mark.parametrize("at", ["localhost:3443", "[::1]:3443", "localhost"])
def test_of_another_scheme_it_is_said_how_to_reach_the_same_node(scheme: str, at: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        source_of(f"{scheme}://{at}")
    assert str(caught.value).startswith(f"{scheme}://{at} is not a source")
    assert f"{at}, or with TLS skywalkers://{at}: write host:3443" in str(caught.value)
