"""The ways in which the nodes of the demo may find each other, one of them a Consul of the demo's own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import HOST, free_addresses, free_ports
from skywalker.discovery.consul import ConsulAccess, ConsulApi
from skywalker.errors import DiscoveryError, SkywalkerError

START_S: Final = 20.0

# PR_SET_PDEATHSIG is 1. Whoever started us may be gone by then, and Consul must not start.
_TETHERED: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class ConsulError(SkywalkerError):
    """There is no Consul to be had; the text says why."""


@contextlib.contextmanager
def consul() -> Iterator[Address]:
    """Run a Consul for the length of a `with` block; yield where its HTTP API is. Raises ConsulError."""
    program = shutil.which("consul")
    if program is None:
        raise ConsulError("there is no program named consul here")
    if importlib.util.find_spec("consul") is None:
        raise ConsulError("python-consul2 is not installed")
    http, server, serf = free_ports(3)
    address = Address(HOST, http)
    with tempfile.TemporaryFile() as log:
        process = _started(program, http, server, serf, log)
        try:
            _wait_until_it_serves(process, address, log)
            yield address
        finally:
            process.kill()  # it has nothing to save
            process.wait()


def _started(program: str, http: int, server: int, serf: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    flags = [f"-bind={HOST}", f"-client={HOST}", "-log-level=warn"]
    ports = {"http": http, "server": server, "serf-lan": serf, "serf-wan": -1, "dns": -1, "grpc": -1}
    return subprocess.Popen(
        [
            *(sys.executable, "-ISc", _TETHERED, str(os.getpid())),
            *(program, "agent", "-dev", *flags, *(f"-{name}-port={port}" for name, port in ports.items())),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=tempfile.gettempdir(),
        process_group=0,  # a Ctrl-C at the terminal is the demo's business
    )


def _wait_until_it_serves(process: subprocess.Popen[bytes], address: Address, log: IO[bytes]) -> None:
    api = ConsulApi(ConsulAccess(address), answer_s=1.0)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if (status := process.poll()) is not None:
            raise ConsulError(f"Consul ended with exit status {status}{_last_words(log)}")
        with contextlib.suppress(DiscoveryError), api.errors():
            # As long as it does not know its own node, it knows no services either.
            _, nodes = api.catalog.nodes()
            if nodes:
                return
        time.sleep(0.05)
    raise ConsulError(f"Consul did not serve within {START_S:g} s{_last_words(log)}")


def _last_words(log: IO[bytes]) -> str:
    text = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode(errors="replace")
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


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
