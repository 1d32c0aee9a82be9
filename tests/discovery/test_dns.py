"""A real DNS server: names of several hosts in both families, services, and records that change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skywalker.address import Address
from skywalker.discovery import dns as dns_module
from skywalker.discovery.source import Source
from skywalker.discovery.url import source_of
from skywalker.errors import DiscoveryError
from tests.discovery import dns_server
from tests.discovery.dns_server import DnsServer
from tests.discovery.watching import Watch

NAME = "nodes.test"
SERVICE = "_skywalker._tcp.nodes.test"
A, B, C = "127.0.0.11", "127.0.0.12", "fd00::13"


@pytest.fixture
def server() -> Iterator[DnsServer]:
    dns_server.require()
    with DnsServer() as server:
        yield server


def by_name(server: DnsServer, name: str = f"{NAME}:3443") -> Source:
    return source_of(f"dns://{name}?server={server.address}")


def by_service(server: DnsServer) -> Source:
    return source_of(f"dns://{SERVICE}?server={server.address}")


def at(port: int, *hosts: str) -> frozenset[Address]:
    return frozenset(Address(host, port) for host in hosts)


def test_a_name_stands_for_all_its_hosts_of_both_families(server: DnsServer) -> None:
    server.serve([(NAME, A), (NAME, B), (NAME, C)])
    assert by_name(server).look().addresses == at(3443, A, B, C)
    assert by_name(server).addresses() == at(3443, A, B, C)
    assert by_name(server, f"{NAME}:4000").addresses() == at(4000, A, B, C)
    assert by_name(server, NAME).addresses() == at(3443, A, B, C)


def test_a_name_for_another_name_is_followed(server: DnsServer) -> None:
    server.serve([("real.test", A)], more=[f"cname={NAME},real.test"])
    assert by_name(server).addresses() == at(3443, A)


def test_a_service_has_hosts_and_ports_of_its_own(server: DnsServer) -> None:
    server.serve(
        [("a.test", A), ("b.test", B), ("b.test", C)],
        [(SERVICE, "a.test", 3443), (SERVICE, "a.test", 3444), (SERVICE, "b.test", 4000)],
    )
    assert by_service(server).addresses() == at(3443, A) | at(3444, A) | at(4000, B, C)


def test_a_target_without_an_address_takes_nothing_from_the_others(server: DnsServer) -> None:
    server.serve([("a.test", A)], [(SERVICE, "a.test", 3443), (SERVICE, "gone.test", 3443)])
    assert by_service(server).addresses() == at(3443, A)


def test_an_answer_too_long_for_one_packet_is_read_whole(server: DnsServer) -> None:
    hosts = [f"127.0.{number}.1" for number in range(200)]
    names = [f"a-host-of-some-length-{number}.test" for number in range(60)]
    server.serve(
        [*((NAME, host) for host in hosts), *((name, A) for name in names)], [(SERVICE, name, 3443) for name in names]
    )
    assert by_name(server).addresses() == at(3443, *hosts)
    assert by_service(server).addresses() == at(3443, A)


@pytest.mark.parametrize(("ttl_s", "pause_s"), [(0, 1.0), (1, 1.0), (7, 7.0), (60, 60.0), (86_400, 60.0)])
def test_the_ttl_says_when_to_look_again_within_bounds(server: DnsServer, ttl_s: int, pause_s: float) -> None:
    server.serve([(NAME, A), ("a.test", A)], [(SERVICE, "a.test", 3443)], ttl_s=ttl_s)
    assert by_name(server).look().pause_s == pause_s
    assert by_service(server).look().pause_s == pause_s


def test_the_shortest_ttl_counts(server: DnsServer) -> None:
    server.serve(
        [("a.test", A)],
        [(SERVICE, "a.test", 3443), (SERVICE, "b.test", 3443)],
        ttl_s=50,
        more=[f"host-record=b.test,{B},{C},9"],
    )
    assert by_service(server).look().pause_s == 9.0


def test_a_watch_sees_what_changes_once_the_ttl_is_over(server: DnsServer) -> None:
    server.serve([(NAME, A)])
    with Watch(by_name(server)) as watch:
        watch.wait_for(at(3443, A))
        server.serve([(NAME, A), (NAME, B), (NAME, C)])
        watch.wait_for(at(3443, A, B, C))
        server.serve([(NAME, C)])
        watch.wait_for(at(3443, C))


@pytest.mark.parametrize("source", [by_name, by_service])
def test_a_name_that_does_not_exist_is_an_error_that_names_it(
    server: DnsServer, source: Callable[[DnsServer], Source]
) -> None:
    server.serve()
    with pytest.raises(DiscoveryError, match=rf"nodes\.test of {server.address}"):
        source(server).look()


def test_a_name_that_has_records_of_other_kinds_only_is_an_error(server: DnsServer) -> None:
    server.serve(more=[f"txt-record={NAME},nothing"])
    with pytest.raises(DiscoveryError, match="no A or AAAA record"):
        by_name(server).look()


def test_what_was_known_holds_while_the_server_is_gone(server: DnsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_module, "ANSWER_S", 0.5)
    server.serve([(NAME, A)])
    with Watch(by_name(server)) as watch:
        watch.wait_for(at(3443, A))
        server.stop()
        watch.wait_for_trouble(1)
        server.start()
        watch.wait_for_trouble(2, within=10.0)
        assert watch.found == [at(3443, A)]
        assert server.address.partition(":")[2] in str(watch.troubles[0])


def test_a_server_that_hangs_is_an_error_in_time(server: DnsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_module, "ANSWER_S", 0.5)
    server.serve([(NAME, A)])
    with server.frozen():
        began = time.monotonic()
        with pytest.raises(DiscoveryError, match="expired"):
            by_name(server).look()
        assert 0.4 < time.monotonic() - began < 3.0


def test_a_server_that_refuses_is_an_error_and_not_an_absence(server: DnsServer) -> None:
    server.serve()
    # dnsmasq has nobody to ask about names outside its own domain.
    with pytest.raises(DiscoveryError, match="REFUSED"):
        by_name(server, "nodes.elsewhere").look()


def test_without_a_server_the_machine_says_which(monkeypatch: pytest.MonkeyPatch, server: DnsServer) -> None:
    import dns.resolver

    server.serve([(NAME, A)])

    def read(self: dns.resolver.Resolver, f: object) -> None:
        self.nameservers, self.port = ["127.0.0.1"], server.port
        self.search = [dns.name.from_text("test")]

    monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", read)
    assert source_of(f"dns://{NAME}").addresses() == at(3443, A)
    # Like every other program on this machine, it takes short names for names in the domains that are searched.
    assert source_of("dns://nodes").addresses() == at(3443, A)


@pytest.mark.parametrize("content", ["", "nameserver 127.0.0.", "nameserver ns.test", "search a..b", "nameserver \xff"])
def test_servers_of_the_machine_that_cannot_be_read_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    import dns.resolver

    whole = dns.resolver.Resolver.read_resolv_conf
    half = tmp_path / "resolv.conf"  # as whoever writes it leaves it for a moment
    half.write_bytes(content.encode("latin-1"))
    monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", lambda self, f: whole(self, half))
    with pytest.raises(DiscoveryError, match=NAME):
        source_of(f"dns://{NAME}").look()


@pytest.mark.parametrize("name", ["x" * 64, "a..b", ".".join(["label"] * 60)])
def test_what_cannot_be_a_name_is_an_error(server: DnsServer, name: str) -> None:
    server.serve()
    with pytest.raises(DiscoveryError):
        by_name(server, name).look()


def test_a_closed_source_asks_no_more(server: DnsServer) -> None:
    server.serve([(NAME, A)])
    source = by_name(server)
    source.close()
    with pytest.raises(DiscoveryError, match="closed"):
        source.look()
