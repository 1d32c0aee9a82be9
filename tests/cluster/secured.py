"""A cluster whose nodes speak TLS and know each other, with clients that have a certificate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from skywalker.access import token
from tests.authority import Authority
from tests.cluster.clusters import Cluster, ClusterNode
from tests.workers.wire_client import SECURE

CLIENT: Final = "client.test"
"""The name in the certificate of every client."""

NODE: Final = "node.test"
"""The name in that of every node, beside its address."""

SECRET: Final = token.new()
CLIENTS_TOKEN: Final = token.new()
"""So that somebody can be a client where a node speaks no TLS."""

ACCESS: Final = f"""
[access.nodes]
{{shows}}
node = true
[access.clients]
certificate = "{CLIENT}"
token = "{token.hash_of(CLIENTS_TOKEN)}"
send = ["*"]
recv = ["*"]
publish = ["*"]
subscribe = ["*"]
"""

BY_TOKEN: Final = f'token = "{token.hash_of(SECRET)}"'
BY_CERTIFICATE: Final = f'certificate = "{NODE}"'


class Secured:
    """A list of where the nodes are, each of which is told what else it takes; `flaws` are what is wrong with one."""

    def __init__(self, directory: Path, cluster: Cluster, shows: str = BY_TOKEN, *, join: str = "") -> None:
        """`shows` is how nodes know each other; they are told of all of them, unless of `join`."""
        self.authority = Authority(directory)
        self.where = join or ",".join(node.address for node in cluster.nodes)
        self.flaws: dict[str, Mapping[str, object]] = {}  # by the name of the node
        self._access = directory / "access.toml"
        self._access.write_text(ACCESS.format(shows=shows))
        self._secret = {"secret": SECRET} if shows == BY_TOKEN else {}
        # The same for all that have an address in common, as here all have.
        addresses = {node.machine.address for node in cluster.nodes}
        self.cert, self.key = self.authority.sign(NODE, *addresses)
        self.context = self.authority.context(*self.authority.sign(CLIENT))
        for node in cluster.nodes:
            SECURE[node.machine.address, node.port] = self.context

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        told: dict[str, object] = {
            "join": self.where, "config_file": self._access, **self._secret,
            "tls_cert": self.cert, "tls_key": self.key, "tls_ca": self.authority.ca,
        }  # fmt: skip
        flaws = self.flaws.get(node.name, {})
        if secret := flaws.get("secret"):
            # By it others prove to this one that they are nodes, too.
            own = self._access.with_name(f"{node.name}.toml")
            own.write_text(ACCESS.format(shows=f'token = "{token.hash_of(str(secret))}"'))
            told["config_file"] = own
        flawed = {**told, **flaws}
        return {key: value for key, value in flawed.items() if value is not None}


@contextlib.contextmanager
def secured(directory: Path, cluster: Cluster, shows: str = BY_TOKEN, *, join: str = "") -> Iterator[Secured]:
    """Have the nodes of a cluster, yet to be started, and every WireClient of it speak TLS."""
    try:
        cluster.discovery = found = Secured(directory, cluster, shows, join=join)
        yield found
    finally:
        for node in cluster.nodes:
            SECURE.pop((node.machine.address, node.port), None)
