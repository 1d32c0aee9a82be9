"""What a Consul may say, and what is asked next: its documentation of blocking queries, line by line, and nonsense."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from skywalker.address import Address
from skywalker.discovery import consul
from skywalker.discovery.consul import ConsulAccess, ConsulSource
from skywalker.errors import DiscoveryError
from tests.discovery.told_consul import ToldConsul, instance

FIRST, SECOND = Address("10.1.1.1", 3443), Address("fd00::2", 3444)

PLAIN = {"passing": "1"}


@pytest.fixture
def told() -> Iterator[ToldConsul]:
    with ToldConsul() as told:
        yield told


@pytest.fixture
def source(told: ToldConsul) -> Iterator[ConsulSource]:
    source = ConsulSource(told.access, "skywalker")
    yield source
    source.close()


def waiting(index: int) -> dict[str, str]:
    return {"passing": "1", "index": str(index), "wait": "50s"}


def asked_after(told: ToldConsul, source: ConsulSource, *indexes: int | str) -> list[dict[str, str]]:
    for index in indexes:
        told.say(index, FIRST)
        assert source.look().addresses == {FIRST}
    return told.asked


def test_a_look_waits_for_what_is_newer_than_the_last_one(told: ToldConsul, source: ConsulSource) -> None:
    assert asked_after(told, source, 5, 7, 7, 9) == [PLAIN, waiting(5), waiting(7), waiting(7)]


def test_an_index_that_goes_backwards_is_forgotten(told: ToldConsul, source: ConsulSource) -> None:
    assert asked_after(told, source, 500, 3, 3, 4) == [PLAIN, waiting(500), PLAIN, waiting(3)]


@pytest.mark.parametrize("index", [0, -1])
def test_an_index_below_one_does_not_make_a_busy_loop(told: ToldConsul, source: ConsulSource, index: int) -> None:
    assert asked_after(told, source, index, 1, 2) == [PLAIN, waiting(1), waiting(1)]


def test_after_an_error_nothing_is_waited_for(told: ToldConsul, source: ConsulSource) -> None:
    asked_after(told, source, 500)
    told.answer(500, b"No cluster leader")
    with pytest.raises(DiscoveryError, match="No cluster leader"):
        source.look()
    asked_after(told, source, 3, 4)
    assert told.asked == [PLAIN, waiting(500), PLAIN, waiting(3)]


def test_what_a_client_asks_does_not_disturb_the_looks(told: ToldConsul, source: ConsulSource) -> None:
    asked_after(told, source, 5)
    told.say(9, SECOND)
    assert source.addresses() == {SECOND}
    asked_after(told, source, 6)
    assert told.asked == [PLAIN, PLAIN, waiting(5)]


def test_many_instances_are_all_found(told: ToldConsul, source: ConsulSource) -> None:
    many = {Address(f"10.0.{number // 250}.{number % 250}", 3443) for number in range(5000)}
    told.say(1, *many)
    assert source.look().addresses == many


@pytest.mark.parametrize("status", [200, 302, 403])
def test_an_answer_without_end_is_not_read_to_its_end(
    told: ToldConsul, source: ConsulSource, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(consul, "MAX_ANSWER", 10_000)
    good, elsewhere = json.dumps([instance(FIRST)]).encode(), {**INDEX, "Location": "http://127.0.0.1:1/"}
    told.answer(status, good + b" " * 10_000, elsewhere)
    with pytest.raises(DiscoveryError, match=f"{told.access} is no Consul: .*more than 10000 bytes"):
        source.look()
    told.answer(200, good + b" " * (10_000 - len(good)), INDEX)
    assert source.look().addresses == {FIRST}


GOOD = json.dumps([instance(FIRST)]).encode()
INDEX = {"X-Consul-Index": "7"}
NONSENSE = {
    "no index": (200, GOOD, {}),
    "an index that is no number": (200, GOOD, {"X-Consul-Index": "seven"}),
    "HTML": (200, b"<html>welcome</html>", INDEX),
    "nothing": (200, b"", INDEX),
    "half of it": (200, GOOD[:-5], INDEX),
    "less than announced": (200, GOOD[:-5], {**INDEX, "Content-Length": str(len(GOOD))}),
    "a number": (200, b"7", INDEX),
    "nil": (200, b"null", INDEX),
    "a map": (200, b'{"error": "no"}', INDEX),
    "instances that are numbers": (200, b"[7]", INDEX),
    "instances without a service": (200, b'[{"Node": {}}]', INDEX),
    "instances whose service is nil": (200, b'[{"Service": null}]', INDEX),
    "an address that is a number": (200, b'[{"Service": {"Address": 7, "Port": 1}}]', INDEX),
    "a port that is text": (200, b'[{"Service": {"Address": "a", "Port": "1"}}]', INDEX),
    "a port beyond all": (200, b'[{"Service": {"Address": "a", "Port": 65536}}]', INDEX),
    "no address anywhere": (200, b'[{"Service": {"Address": "", "Port": 1}, "Node": {"Address": ""}}]', INDEX),
    "no UTF-8": (200, b'["\xff\xfe"]', INDEX),
    "nests deep": (200, b"[" * 100_000, INDEX),
    "there is no such page": (404, b"not found", INDEX),
    "a redirection": (301, b"", {"Location": "http://127.0.0.1:1/"}),
    "permission denied": (403, b"Permission denied", {}),
    "too many requests": (429, b"slow down", {}),
    "bad gateway": (502, b"<html>", {}),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_an_answer_that_makes_no_sense_is_an_error_that_says_whose(
    told: ToldConsul, source: ConsulSource, answer: tuple[int, bytes, dict[str, str]]
) -> None:
    told.answer(*answer)
    with pytest.raises(DiscoveryError, match=str(told.access)):
        source.look()
    told.say(3, FIRST)
    assert source.look().addresses == {FIRST}


def test_nobody_is_asked_to_whom_an_answer_points(told: ToldConsul) -> None:
    with ToldConsul() as other:
        told.answer(302, b"", {"Location": f"http://{other.access.address}/"})
        other.say(1, FIRST)
        with pytest.raises(DiscoveryError, match=str(told.access)):
            ConsulSource(dataclasses.replace(told.access, token="of-this-consul"), "skywalker").look()
        assert other.asked == []


@pytest.mark.parametrize("bytes_", [b"", b"\0\1\2", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000])
def test_what_does_not_speak_http_is_an_error_that_says_whose(bytes_: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(bytes_)

        thread = threading.Thread(target=serve)
        thread.start()
        access = ConsulAccess(Address(*listener.getsockname()))
        with pytest.raises(DiscoveryError, match=str(access)):
            ConsulSource(access, "skywalker").look()
        thread.join()


def test_where_nothing_listens_it_says_so() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        access = ConsulAccess(Address(*unheard.getsockname()))
        source = ConsulSource(access, "skywalker")
        with pytest.raises(DiscoveryError, match=f"{access}: Connection refused"):
            source.addresses()
        try:
            raise TimeoutError("the last node does not answer")
        except TimeoutError:  # as where a client dials
            with pytest.raises(DiscoveryError, match=f"{access}: Connection refused"):
                source.addresses()
