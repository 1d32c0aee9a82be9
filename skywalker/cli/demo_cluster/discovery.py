"""The ways in which the nodes of the demo may find each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import free_addresses

SERVICE: Final = "skywalker-demo"

Addresses = Mapping[str, Address]
"""Where the nodes are, by their names."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """One of them."""

    text: str  # to end a sentence that begins "nodes, which"
    where: str  # what a client connects to
    settings: Mapping[str, Mapping[str, Any]]  # what each node is told, by name


def by_list(addresses: Addresses) -> Discovery:
    """Tell each node where all of them are."""
    everybody = ",".join(map(str, addresses.values()))
    return Discovery("find each other by a list", everybody, {name: {"join": everybody} for name in addresses})


def by_silk(addresses: Addresses) -> Discovery:
    """Have each node be a member, and tell it of the first."""
    members = free_addresses([*addresses])
    first = str(next(iter(members.values())))
    return Discovery(
        f"find each other by Silk: each is told of one, {first}",
        f"silk://{','.join(map(str, members.values()))}",
        {name: {"silk": str(member), "silk_join": first} for name, member in members.items()},
    )


def by_consul(addresses: Addresses, consul: Address) -> Discovery:
    """Have each node register in a Consul, and look there."""
    told = {"consul": True, "register": True, "service": SERVICE, "consul_url": f"http://{consul}"}
    return Discovery(
        f"find each other in a Consul at {consul}", f"consul://{consul}/{SERVICE}", dict.fromkeys(addresses, told)
    )
