"""A node with listeners of its manager's beside its own: what becomes, when it drains, of who waits to be let in."""

from __future__ import annotations

import os
import re
import signal
import socket

import psutil
import pytest

from skywalker.address import Address
from tests.cli.running import SKYWALKER
from tests.helpers import eventually
from tests.systemd.manager import Manager
from tests.workers.processes import connect, is_gone
from tests.workers.pubsub_client import PubSubClient
from workers.ipc import exits


def listens(pid: int, port: int) -> bool:
    connections = psutil.Process(pid).net_connections("tcp")
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in connections)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--port=1"], "bind and port say 127.0.0.1:1:"),
        (["--bind=127.0.0.2"], "bind and port say 127.0.0.2:"),
        (["--pubsub-bind=:1"], "pubsub_bind and pubsub_port say 127.0.0.1:1:"),
        (["--pubsub-port=1"], "pubsub_bind and pubsub_port say 127.0.0.1:1:"),
    ],
)
def test_listeners_at_another_address_than_the_settings_say_are_refused(flags: list[str], told: str) -> None:
    with Manager([SKYWALKER, "serve", "--no-admin", *flags], listeners={"junction": 1, "pubsub": 1}) as manager:
        manager.start()
        assert manager.wait() == exits.ADDRESS
        assert re.fullmatch(
            rf"skywalker: the manager passed listeners for \S+ at 127.0.0.1:\d+, {told}.*\n", manager.log()
        )


def test_settings_that_say_where_the_listeners_are_are_good() -> None:
    with Manager(["/bin/true"], listeners={"junction": 1, "pubsub": 1}) as opened:
        port = opened.address("junction")[1]
        flags = [f"--port={port}", "--bind=localhost", "--pubsub-port=0"]
        with Manager([SKYWALKER, "serve", "--no-admin", "--drain-timeout=0", *flags]) as manager:
            manager.listeners = opened.listeners
            manager.start()
            manager.until(READY="1")
            with connect(port) as client:
                assert client.answer(":ping") is True
            assert manager.stop() == exits.OK


def test_who_waits_at_a_listener_that_stays_is_left_to_the_next_node_and_at_any_other_let_in() -> None:
    command = [SKYWALKER, "serve", "--port=0", "--pubsub-port=0", "--no-admin", "--drain-timeout=10s"]
    with Manager(command, listeners={"junction": 1}) as manager:
        manager.start()
        manager.until(READY="1")
        assert manager.process is not None
        found = re.search(r"event=serving .*\bpubsub=(\S+)", manager.log())
        assert found
        pubsub = Address.parse(found[1])
        [worker] = [each.pid for each in psutil.Process(manager.process.pid).children()]
        junction = manager.address("junction")[1]
        with connect(junction) as busy:
            busy.begin(":recv!", 60_000, "topic")
            busy.answer(":ping")
            os.kill(worker, signal.SIGSTOP)
            manager.signal(signal.SIGTERM)
            # It has told its worker to drain, and closed its own copy.
            supervisor = manager.process.pid
            eventually(lambda: not listens(supervisor, pubsub.port))
            with (
                PubSubClient.open((pubsub.host, pubsub.port)) as let_in,
                connect(junction) as left,
            ):
                ping = left.begin(":ping")
                os.kill(worker, signal.SIGCONT)
                let_in.subscribe(b"topic")
                let_in.publish(b"topic", b"payload")
                assert let_in.message().payload == b"payload"
                assert not is_gone(worker)
                manager.signal(signal.SIGTERM)
                assert manager.wait() == exits.OK
                let_in.wait_for_end()
                manager.start()
                assert left.result(ping) is True
        manager.until(READY="1")
        assert "Traceback" not in manager.log()


def test_listeners_that_another_node_has_as_well_are_refused_until_that_one_has_ended() -> None:
    command = [SKYWALKER, "serve", "--no-admin", "--drain-timeout=0"]
    with Manager(command, listeners={"junction": 1}) as manager, Manager(command) as other:
        manager.start()
        manager.until(READY="1")
        other.listeners = manager.listeners
        other.start()
        assert other.wait() == exits.ADDRESS
        port = manager.address("junction")[1]
        assert manager.process is not None
        assert "the manager passed its listeners to another node as well" in other.log()
        assert f"skywalker:{port}, process {manager.process.pid} of " in other.log()
        assert manager.stop() == exits.OK
        other.start()
        other.until(READY="1")
        with connect(port) as client:
            assert client.answer(":ping") is True


def test_listeners_that_others_have_joined_are_refused() -> None:
    """SO_REUSEPORT lets any program of the user who opened them do so, in silence."""
    with (
        Manager([SKYWALKER, "serve", "--no-admin"], listeners={"junction": 1}) as manager,
        socket.socket() as stranger,
    ):
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(manager.address("junction"))
        stranger.listen()
        manager.start()
        assert manager.wait() == exits.ADDRESS
        assert "others listen there beside the manager: end them" in manager.log()
