"""Every way in which nodes can find each other, with the server that it takes, if it takes one."""

from __future__ import annotations

import contextlib
from typing import Final

from tests.cluster.clusters import Cluster, Consul, Dns, Silk
from tests.cluster.network import Machine
from tests.discovery import consul_agent, dns_server
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.dns_server import DnsServer

WAYS: Final = ("silk", "list", "dns", "consul")

SERVICE: Final = "skywalker-cluster"


def find_by(way: str, cluster: Cluster, closing: contextlib.ExitStack, server: Machine | None = None) -> None:
    """Have the nodes of a cluster find each other so; what it takes runs on the machine `server`, until `closing`."""
    match way:
        case "silk":
            cluster.discovery = Silk(cluster.nodes)
        case "dns":
            dns_server.require()
            cluster.discovery = Dns(closing.enter_context(DnsServer(server)), cluster.nodes)
        case "consul":
            consul_agent.require()
            agent = closing.enter_context(ConsulAgent(machine=server))
            cluster.discovery = Consul(agent.address, SERVICE)
        case _:
            assert way == "list", way
