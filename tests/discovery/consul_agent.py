"""A real Consul in development mode, on ports of its own: to start, stop, kill and start again at the same place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skywalker.address import Address
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.discovery.consul import ConsulAccess
from tests.helpers import eventually, frozen, time_factor

HERE = "127.0.0.1"

ROOT = Path(__file__).resolve().parent.parent.parent


def program() -> str | None:
    """Return the path of Consul's program, None if this machine has none."""
    return shutil.which("consul", path=f"{ROOT / '.tools' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")


def require() -> None:
    """Skip the test where there is no Consul."""
    if program() is None:
        pytest.skip("there is no Consul here: make tools says why")


class ConsulAgent:
    """One Consul, which forgets everything when it ends. For a `with` block, in which it runs until told otherwise."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` go into its configuration file as they are."""
        self._http, self._https, self._server, self._serf = free_ports(4)
        self._settings = settings or {}
        self._directory = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ConsulAgent:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._directory.cleanup()

    @property
    def address(self) -> Address:
        """Where its HTTP API is."""
        return Address(HERE, self._http)

    @property
    def tls_address(self) -> Address:
        """Where its HTTP API is by TLS, if the settings have the files for it."""
        return Address(HERE, self._https)

    @property
    def access(self) -> ConsulAccess:
        """Its API without a token."""
        return ConsulAccess(self.address)

    def url(self, service: str) -> str:
        """Return the URL of a cluster that is this service."""
        return f"consul://{self.address}/{service}"

    @property
    def log(self) -> str:
        """What all its lives have logged."""
        path = self._path("log")
        return path.read_text() if path.exists() else ""

    def start(self) -> None:
        """Start it, again or for the first time, and wait until it serves."""
        path = program()
        assert path is not None, "there is no Consul here: make tools says why"
        assert self._process is None, "it runs"
        ports = {"http": self._http, "server": self._server, "serf_lan": self._serf}
        ports |= {"dns": -1, "grpc": -1, "serf_wan": -1, "https": self._https if "cert_file" in self._settings else -1}
        settings = {"bind_addr": HERE, "client_addr": HERE, "ports": ports, **self._settings}
        file = self._path("settings.json")
        file.write_text(json.dumps(settings))
        with self._path("log").open("ab") as log:
            # It ends with this process, however that ends.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", path, "agent", "-dev", f"-config-file={file}"],
                stdout=log, stderr=log, start_new_session=True, cwd=self._directory.name,
            )  # fmt: skip
        eventually(self._has_leader, within=30.0)

    def stop(self) -> None:
        """End it in the orderly way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def forget(self) -> None:
        """Have it know no service any more, or it goes on to check ports that other tests have by then."""
        for id in self.ask("/v1/agent/services"):
            self.ask(f"/v1/agent/service/deregister/{id}", method="PUT")

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """Have it hang for the length of a `with` block: it takes connections, and says nothing."""
        assert self._process is not None
        return frozen(self._process)

    def ask(self, path: str, data: Any = None, *, method: str = "GET", token: str = "") -> Any:
        """Return its answer to a request, from JSON."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data=None if data is None else json.dumps(data).encode(),
            method=method,
            headers={"X-Consul-Token": token} if token else {},
        )
        with urllib.request.urlopen(request, timeout=10 * time_factor()) as answer:
            text = answer.read()
            return json.loads(text) if text.strip() else None

    def _path(self, name: str) -> Path:
        return Path(self._directory.name, name)

    def _has_leader(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"Consul ended with {self._process.returncode}:\n{self.log}")
        # Only then does it answer for services too.
        return bool(self.ask("/v1/status/leader")) and "Synced node info" in self.log.rpartition("Starting agent")[2]

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.send_signal(number)
            process.wait(20 * time_factor())
