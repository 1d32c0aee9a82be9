"""Listeners that a manager passes on: what a process makes of good ones, and of those that are not what they should be.

A process of its own takes them, since it is the numbers of its descriptors that count.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import closing

import pytest

from tests.systemd.manager import Manager
from workers.engine.sockets import AddressError
from workers.setup.activation import inherited

PROGRAM = """
import fcntl, json, os, sys
from workers.engine import sockets
from workers.setup import activation
try:
    found = activation.inherited(os.environ, os.getpid() + int(os.environ.get("BESIDE", "0")))
except sockets.AddressError as error:
    print(json.dumps({"error": str(error)}), file=sys.stderr)
    sys.exit()
told = {name: [[each.fileno(), *each.getsockname()] for each in of_name] for name, of_name in found.items()}
every = [each for of_name in found.values() for each in of_name]
print(json.dumps({
    "found": told,
    "passed_on": any(os.get_inheritable(each.fileno()) for each in every),
    "blocks": any(each.getblocking() for each in every),
    "variables": [name for name in os.environ if name.startswith("LISTEN_")],
}), file=sys.stderr)
"""


def told(manager: Manager) -> dict[str, object]:
    manager.start()
    assert manager.wait() == 0, manager.log()
    answer: dict[str, object] = json.loads(manager.log())
    return answer


def taking(listeners: dict[str, int], **variables: str) -> Manager:
    return Manager([sys.executable, "-c", PROGRAM], listeners=listeners, variables=variables)


def wrong(sock: socket.socket, name: str = "junction") -> str:
    """Return what is said of one socket."""
    with taking({}) as manager:
        manager.listeners = {name: [sock]}
        return str(told(manager)["error"])


def test_listeners_come_by_door_in_their_order_and_go_no_further() -> None:
    with taking({"junction": 3, "pubsub": 3}) as manager:
        answer = told(manager)
        junction, pubsub = manager.address("junction"), manager.address("pubsub")
    assert answer == {
        "found": {
            "junction": [[fd, *junction] for fd in (3, 4, 5)],
            "pubsub": [[fd, *pubsub] for fd in (6, 7, 8)],
        },
        "passed_on": False,
        "blocks": False,
        "variables": [],
    }


def test_what_is_meant_for_another_process_is_left_alone() -> None:
    with taking({"junction": 1}, BESIDE="1") as manager:
        assert told(manager)["found"] == {}


@pytest.mark.parametrize("environ", [{}, {"LISTEN_PID": str(os.getpid())}, {"LISTEN_FDS": "1"}])
def test_without_listeners_there_are_none(environ: dict[str, str]) -> None:
    environ = {**environ, "LISTEN_FDNAMES": "junction"}
    assert inherited(environ, os.getpid()) == {}
    assert environ == {}


@pytest.mark.parametrize("number", ["abc", "-1", "1.5", "\u00b2", "4097", "1000000000", "9" * 5000])
def test_a_number_of_listeners_that_cannot_be_is_told_at_once(number: str) -> None:
    environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": number}
    with pytest.raises(AddressError, match=r"^LISTEN_FDS is '.{1,64}', not a number of sockets up to 4096"):
        inherited(environ, os.getpid())


def test_a_name_that_is_no_door_is_told() -> None:
    with taking({"junction": 1, "skywalker.socket": 1}) as manager:
        error = str(told(manager)["error"])
    assert error.endswith("a socket named 'skywalker.socket': set FileDescriptorName= to junction or pubsub")


def test_listeners_that_workers_cannot_share_are_told_how() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        assert wrong(sock).endswith("a socket for junction that its workers cannot share: set ReusePort=yes")


def test_sockets_that_do_not_listen_or_are_not_of_tcp_are_told() -> None:
    with socket.socket() as sock:
        assert "does not listen" in wrong(sock)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert "is not one of TCP" in wrong(sock)
    with socket.socket(socket.AF_UNIX) as sock:
        assert "is not one of TCP" in wrong(sock)


def test_what_is_no_socket_at_all_is_told() -> None:
    with taking({}) as manager, open(os.devnull) as file:
        manager.listeners = {"junction": [file]}  # type: ignore[list-item]  # it has a descriptor
        assert "is none at all" in str(told(manager)["error"])


def test_listeners_of_one_door_at_two_addresses_are_told() -> None:
    with taking({"junction": 1, "pubsub": 1}) as manager:
        manager.listeners = {"junction": [each for of_name in manager.listeners.values() for each in of_name]}
        assert "give one address only" in str(told(manager)["error"])


def test_doors_with_different_numbers_of_listeners_are_told() -> None:
    with taking({"junction": 2, "pubsub": 1}) as manager:
        assert "2 for junction and 1 for pubsub: give one of each for each worker" in str(told(manager)["error"])
