"""A whole node as a child of this program: `with embedded(workers=2) as node: ...`.

The node is the same that `skywalker serve` runs, on a free port of 127.0.0.1. It holds one end
of a pair of sockets: through it comes the address once every worker serves, and its end tells
the node to stop, so that it never outlives the program, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from skywalker import config, processes
from skywalker.address import Address
from skywalker.clients.blocking import client
from skywalker.errors import SkywalkerError
from skywalker.setting import CREDENTIALS

START_S: Final = 30.0
"""Seconds for every worker to serve, on a busy machine."""

DRAIN_S: Final = 0.2
"""Seconds that waiting calls get at the end: whoever made them is in this program, and knows."""

GRACE_S: Final = 5.0
"""Seconds for the node to end after it was told to, beyond its drain time; then it is told again, then killed."""


WORKER: Final = re.compile(r"skywalker-\d+")
"""What the processes of workers call themselves."""

AGENT: Final = "skywalker-agent"
"""What the process of a node that is no worker calls itself."""


class StartError(SkywalkerError):
    """A node did not start: its exit `status`, None if it was only too slow, and what it said, the `log`."""

    def __init__(self, problem: str, status: int | None, log: str) -> None:
        super().__init__(f"{problem}:\n{log}".rstrip(":\n"))
        self.status = status
        self.log = log


class Node:
    """A node that runs until stop(). Made by start() or embedded().

    `pid` is its supervisor's process; `host`, `port` and `address` ("127.0.0.1:PORT") are where it listens, and
    `pubsub_address` where it speaks pub/sub, `admin_address` where it shows what it does, and `unix_address` its socket
    on this machine, empty if it does not.
    """

    def __init__(self, process: subprocess.Popen[bytes], lifeline: socket.socket, log: IO[bytes], grace: float) -> None:
        self._process = process
        self._lifeline = lifeline
        self._log = log
        self._last_log = ""
        self._grace = grace
        self.pid = process.pid
        self.host = ""
        self.port = 0
        self.pubsub_address = ""
        self.admin_address = ""
        self.unix_address = ""

    @property
    def address(self) -> str:
        """Where it listens, as connect() takes it."""
        return str(Address(self.host, self.port))

    @property
    def log(self) -> str:
        """What the node has written to standard error, so far or until it was stopped."""
        if self._log.closed:
            return self._last_log
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def connect(self, **options: Any) -> client.Client:
        """Return a client of this node; the options are those of skywalker.connect()."""
        return client.connect(self.address, **options)

    def worker_pids(self) -> list[int]:
        """Return the processes that are its workers now, oldest first."""
        # By name, since one that was just forked is nothing yet.
        children = (pid for pid in processes.pids() if processes.parent(pid) == self.pid)
        return sorted(pid for pid in children if WORKER.fullmatch(processes.name(pid)))

    def stop(self) -> int:
        """End the node, unless it has ended; return its exit status, negative for a signal."""
        if self._process.poll() is None:
            for _ in range(2):
                self._process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(self._grace)
                    break
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
        self._lifeline.close()
        status = self._process.wait()
        self._last_log = self.log
        self._log.close()
        return status

    def _await_ready(self, within: float) -> None:
        deadline = time.monotonic() + within
        line = b""
        while not line.endswith(b"\n"):
            self._lifeline.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self._lifeline.recv(65536)
            except TimeoutError:
                raise StartError(f"the node did not serve within {within:g} s", None, self.log) from None
            except ConnectionResetError:
                data = b""
            if not data:
                status = self._process.wait()
                raise StartError(f"the node did not start, exit status {status}", status, self.log)
            line += data
        ready = json.loads(line)
        self.host, self.port = ready["host"], ready["port"]
        self.pubsub_address = ready.get("pubsub", "")
        self.admin_address = ready.get("admin", "")
        self.unix_address = ready.get("unix", "")


def start(*, start_timeout: float = START_S, config_file: Path | str | None = None, **settings: object) -> Node:
    """Start a node and return it once every worker serves; the caller stops it.

    The settings are those of `skywalker serve`, named as in its configuration file; `pubsub=True` opens
    the pub/sub door. The node listens on free ports unless they are given, and takes nothing from
    SKYWALKER_* variables. They outdo those of the `config_file`, which alone can say who may do what.
    Raises ConfigError for a wrong setting, StartError with the node's own words if it does not start.
    """
    usual: dict[str, object] = {"port": 0, "drain_timeout_s": DRAIN_S, "admin": False, "admin_port": 0}
    if os.geteuid() == 0:
        usual["user"] = "root"  # whoever runs this program as root has chosen to
    values = config.checked({**usual, **settings})
    if values.get("pubsub", "pubsub_bind" in values):
        values.setdefault("pubsub_port", 0)
    elif "pubsub" in values:
        values = {key: value for key, value in values.items() if not key.startswith("pubsub_")}
    flags = [flag for key, value in values.items() for flag in config.BY_KEY[key].flags(value)]
    if config_file is not None:
        flags.append(f"--config={config_file}")
    ignored = {"SKYWALKER_CONFIG", CREDENTIALS, *(setting.variable for setting in config.SETTINGS)}
    environ = {name: value for name, value in os.environ.items() if name not in ignored}
    secrets = {key for key in values if config.BY_KEY[key].secret}  # which have no flags
    environ |= {config.BY_KEY[key].variable: str(values[key]) for key in secrets}
    with contextlib.ExitStack() as unless_it_runs:
        log = unless_it_runs.enter_context(tempfile.TemporaryFile())
        ours, theirs = socket.socketpair()
        unless_it_runs.enter_context(ours)
        with theirs:
            process = subprocess.Popen(
                # -P: a package of the same name in the current directory is not the server.
                [sys.executable, "-P", "-m", "workers", f"--parent-fd={theirs.fileno()}", *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                pass_fds=[theirs.fileno()],
                process_group=0,  # a Ctrl-C at the terminal is this program's business
            )
        unless_it_runs.pop_all()
    node = Node(process, ours, log, float(values["drain_timeout_s"]) + GRACE_S)
    try:
        node._await_ready(start_timeout)
    except BaseException:
        node.stop()
        raise
    return node


@contextlib.contextmanager
def embedded(workers: int = 1, **settings: Any) -> Iterator[Node]:
    """Run a node for the length of a `with` block. The settings are those of start()."""
    node = start(workers=workers, **settings)
    try:
        yield node
    finally:
        node.stop()
