"""A real DNS server, on loopback, with the records that a test gives it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import dns.resolver
import pytest

from skywalker.cli.demo_cluster.ports import free_ports
from tests.helpers import eventually, frozen, time_factor

HERE = "127.0.0.1"
_READY = "ready.test"


def require() -> None:
    """Skip the test where there is no dnsmasq."""
    if _program() is None:
        pytest.skip("there is no dnsmasq here: make tools says why")


def _program() -> str | None:
    # Ordinary users have no sbin in their path.
    return shutil.which("dnsmasq", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")


class DnsServer:
    """dnsmasq, which knows what it was told and asks nobody else. For a `with` block."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self._directory = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None
        self._records: tuple[str, ...] = ()

    def __enter__(self) -> DnsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._directory.cleanup()

    @property
    def address(self) -> str:
        return f"{HERE}:{self.port}"

    def serve(
        self,
        hosts: Iterable[tuple[str, str]] = (),
        services: Iterable[tuple[str, str, int]] = (),
        *,
        ttl_s: int = 1,
        more: Iterable[str] = (),
    ) -> None:
        """Serve these from now on: addresses of names, targets and ports of services, and further settings."""
        self._records = (
            f"local-ttl={ttl_s}",
            f"host-record={_READY},127.0.0.1",
            *(f"host-record={name},{address}" for name, address in hosts),
            *(f"srv-host={name},{target},{port}" for name, target, port in services),
            *more,
        )
        self.stop()
        self.start()

    def start(self) -> None:
        """Start it, as it was."""
        program = _program()
        assert program is not None, "there is no dnsmasq here: make tools says why"
        path = Path(self._directory.name, "settings")
        path.write_text("\n".join([*self._records, "local=/test/", ""]))
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig=KILL", program, "--keep-in-foreground", f"--conf-file={path}", "--user="),
                *(f"--port={self.port}", f"--listen-address={HERE}", "--bind-interfaces"),
                *("--no-hosts", "--no-resolv", "--pid-file=", "--log-facility=-"),
            ],
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = [HERE], self.port
        eventually(lambda: resolver.resolve(_READY, "A", lifetime=0.2), within=10.0)

    def stop(self) -> None:
        """End it; nobody answers then."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.wait(10 * time_factor())

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """Have it hang for the length of a `with` block."""
        assert self._process is not None
        return frozen(self._process)
