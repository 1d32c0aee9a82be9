"""Agents and a real Consul: whoever is registered is well, wherever its health is asked for."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skywalker.address import Address
from skywalker.config import Cluster
from skywalker.members import Member
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.helpers import eventually
from tests.workers.processes import Node, node
from tests.workers.reloads import reload
from workers.agent.assembly import _registration
from workers.ipc import exits


@pytest.mark.parametrize(
    ("listens", "asked"), [("0.0.0.0", "10.0.0.1"), ("::", "10.0.0.1"), ("::1", "[::1]"), ("127.0.0.1", "127.0.0.1")]
)
def test_health_is_asked_for_where_it_is_served_and_where_that_is_everywhere_at_the_nodes_address(
    listens: str, asked: str
) -> None:
    member = Member("id", "name", Address("10.0.0.1", 3443), 2, False, (1,))
    service = _registration(Cluster(), member, Address(listens, 80))._service
    assert service.health_url == f"http://{asked}:80/health"
    assert service.address == member.address


@pytest.fixture
def own_consul() -> Iterator[ConsulAgent]:
    """A Consul that no other test sees."""
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


def agent_of(found: Node) -> int:
    """Return the process that is a node's agent."""
    return int(found.events("ring")[-1]["pid"])


def test_nodes_find_each_other_in_consul_whose_agents_are_killed_or_drain(own_consul: ConsulAgent) -> None:
    settings = ["--consul", "--register", f"--consul-url=http://{own_consul.address}"]

    def well() -> set[str]:
        """What those checks say that pass: where health is asked for, among others."""
        checks = own_consul.ask("/v1/agent/checks").values()
        return {check["Output"] for check in checks if "200 OK" in check["Output"]}

    with ExitStack() as stack:
        a, b = (
            stack.enter_context(node(workers=1, settings=[*settings, f"--health-bind={host}", f"--name={host}"]))
            for host in ("::1", "localhost")
        )

        def ring(of: Node) -> set[str]:
            with of.connect() as client:
                return {member["name"] for member in client.answer(":nodes")["nodes"]}

        eventually(lambda: ring(a) == ring(b) == {"::1", "localhost"}, within=20.0)
        before = eventually(lambda: len(found := well()) == 2 and found, within=20.0)
        first = agent_of(a)
        os.kill(first, signal.SIGKILL)
        # The new one has a port of its own, and Consul asks there.
        eventually(lambda: len(well()) == 2 and len(well() & before) == 1, within=20.0)
        assert agent_of(a) != first
        assert ring(a) == ring(b) == {"::1", "localhost"}
        b.signal(signal.SIGTERM)
        eventually(lambda: ring(a) == {"::1"}, within=5.0)
        assert b.wait(10.0) == exits.OK
        assert len(own_consul.ask("/v1/health/service/skywalker")) == 1


@contextmanager
def registering() -> Iterator[tuple[Address, set[str]]]:
    """Run what registers services as Consul does, and checks none; yield where, and the ids of those that it knows."""
    known: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({id: {} for id in known})

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if "/deregister/" in self.path:
                known.discard(self.path.partition("?")[0].rpartition("/")[2])
            else:
                known.add(json.loads(data)["id"])
            self._answer({})

        def _answer(self, content: object) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield Address("127.0.0.1", server.server_port), known
        finally:
            server.shutdown()
            thread.join()


def test_a_node_that_a_reload_has_registered_otherwise_or_not_at_all_is_forgotten_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"

    def write(service: str, *, register: bool = True) -> None:
        settings = f'register = {str(register).lower()}\nservice = "{service}"\nconsul_url = "http://{at}"\n'
        file.write_text(f"drain_timeout_s = 0\n[cluster]\n{settings}")

    with registering() as (at, known):
        write("before")
        with node(workers=1, settings=[f"--config={file}"]) as running:
            (was,) = eventually(lambda: {*known}, within=10.0)
            assert was.startswith("before-")
            reload(running)
            write("now")
            reload(running)
            (now,) = eventually(lambda: {*known} - {was}, within=10.0)
            assert was not in known, "it is forgotten first"
            assert now == was.replace("before", "now")
            write("now", register=False)
            reload(running)
            eventually(lambda: not known, within=10.0)
            assert not running.events("agent-ended")
