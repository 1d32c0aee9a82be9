"""Links between nodes by TLS: what is said of one that cannot be made, and what a bad one costs anybody else."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from skywalker import errors
from skywalker.members import Snapshot
from skywalker.tls.contexts import server_context
from skywalker.tls.words import CLOSED, NO_TLS, SILENT
from skywalker.wire import junction as wire
from tests.authority import Authority
from tests.helpers import eventually, time_factor
from tests.workers.dialled import HOST, Behave, Dialled, closes, says_nothing, speaks_plainly
from tests.workers.one_worker import OneWorker, credentials_by
from tests.workers.running_nodes import running_in_tls
from tests.workers.wire_client import WireClient, call, clients_of, packed
from workers.calls.own_node import VERSION
from workers.mesh.messages import LISTEN
from workers.nodes.peer import ATTEMPT_S

WHO: Final = errors.Unauthorized("this node wants to know who is calling")


@pytest.fixture
def worker(authority: Authority) -> OneWorker:
    return OneWorker(credentials=credentials_by(authority))


def until(worker: OneWorker, check: Callable[[], object], later: float = 0.0) -> None:
    """Have it do what there is to do until something is true."""
    deadline = time.monotonic() + 5.0 * time_factor()
    while not check():
        assert time.monotonic() < deadline, "it was not so in time"
        worker.turn(later)


def answers(frame: bytes, sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(frame)
    says_nothing(sock)


refuses = functools.partial(answers, wire.error_frame(wire.PEER, b"\0", WHO))

is_another = functools.partial(answers, call(":peer", 0, {"node": "another", "worker": 0}))


@pytest.mark.parametrize(
    ("flaw", "behave", "words"),
    [
        ("no TLS", says_nothing, SILENT),
        ("no TLS", closes, CLOSED),
        ("no TLS", speaks_plainly, NO_TLS),
        ("name", says_nothing, "its certificate is for other names"),
        ("authority", says_nothing, "its certificate is of no authority that is trusted here"),
        ("trust", says_nothing, "our certificate is of an authority that it does not trust"),
        ("", refuses, f"what is there does not let this node in: it said: {WHO}"),
        ("", is_another, "node another answers there"),
    ],
)
def test_it_is_said_once_why_there_is_no_link_and_tried_again_but_not_without_a_pause(
    authority: Authority,
    stranger: Authority,
    worker: OneWorker,
    flaw: str,
    behave: Behave,
    words: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    cert, key = (stranger if flaw == "authority" else authority).sign("another.example" if flaw == "name" else HOST)
    context = server_context(cert, key, (stranger if flaw == "trust" else authority).ca, required=True)
    log: list[str] = []

    def reasons() -> list[str]:
        log.append(capfd.readouterr().err)
        return re.findall(r'event=peer-unreachable .*reason="?(.*)', "".join(log))

    with contextlib.closing(worker), worker.connect() as client:
        with Dialled(behave, None if flaw == "no TLS" else context) as dialled:
            worker.hub.follow(Snapshot([dialled.member]))
            client.call(":send!", 1, 60_000, "topic", "value")
            until(worker, reasons, 2 * ATTEMPT_S if words == SILENT else 0.0)
            if words == CLOSED:
                worker.turn()
                assert dialled.accepted == 1
                until(worker, lambda: dialled.accepted > 1, 100.0)
        [reason] = reasons()
        assert reason.startswith(words)


# A node that is dialled by one without manners.


def cut_short(guest: WireClient) -> None:
    os.write(guest.socket.fileno(), b"\x17\x03\x03\x00\x20" + bytes(16))
    guest.socket.shutdown(socket.SHUT_RDWR)


def rubbish(guest: WireClient) -> None:
    os.write(guest.socket.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))


def no_records(guest: WireClient) -> None:
    os.write(guest.socket.fileno(), b"GET / HTTP/1.1\r\n\r\n")


def says_goodbye_and_stays(guest: WireClient) -> None:
    assert isinstance(guest.socket, ssl.SSLSocket)
    guest.socket.setblocking(False)
    with contextlib.suppress(ssl.SSLError):
        guest.socket.unwrap()


def an_endless_message(guest: WireClient) -> None:
    with contextlib.suppress(ConnectionError):  # it is cut off before all of that is written
        guest.write((1 << 24).to_bytes(4, "big") + bytes(300_000))


@pytest.mark.parametrize("wrong", [cut_short, rubbish, no_records, says_goodbye_and_stays, an_endless_message])
def test_what_is_no_tls_ends_the_link_and_costs_nobody_else_anything(
    tmp_path: Path, wrong: Callable[[WireClient], None]
) -> None:
    with running_in_tls(tmp_path) as node, clients_of(node.address) as connect:
        client, guest = connect(), connect()
        whom = {"node": guest.ask(":hello", 0, {})["node"], "worker": 0}
        guest.ask(":peer", 0, {"from": "guest", "by": 0, "version": VERSION, **whom})
        listens = packed([LISTEN, 2**40, 0.0, "topic", None])
        guest.write(len(listens).to_bytes(4, "big") + listens)
        client.wait_until("topic", receivers=1)
        wrong(guest)
        client.wait_until("topic", receivers=0)
        eventually(lambda: "event=guest-left" in node.log)
        assert "ssl.c" not in node.log, "it is said in words"
