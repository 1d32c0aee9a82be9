"""A node begins: who it runs as, where it listens, who it is to others; then its supervisor has it live.

Only this names the real machine.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from pwd import struct_passwd
from typing import Any

from skywalker import memory, own_directory
from skywalker.config import Config
from skywalker.errors import ConfigError, SkywalkerError
from skywalker.processes import node_name
from workers.engine import sockets
from workers.engine.credentials import Credentials, server
from workers.engine.machine import MACHINE, Program, rename
from workers.ipc import exits
from workers.process.notify import Notifier
from workers.process.supervisor import Supervisor
from workers.setup import exposure, privileges
from workers.setup.activation import inherited
from workers.setup.ground import JUNCTION, Ground, state_path
from workers.setup.identity import StateDirectory, StateError
from workers.stats.log import Log


class Start:
    """What is done once, before a node has processes."""

    def __init__(self, config: Config, parent_fd: int = -1, read_again: Callable[[], Config] | None = None) -> None:
        """The descriptor `parent_fd`, unless it is -1, and `read_again` are the supervisor's, which has a socket."""
        self._config = config
        self._read_again = read_again
        self._parent_fd = parent_fd
        self._log = Log(MACHINE.monotonic, process="supervisor")
        # It says of whoever has started it what it becomes, whatever the level is.
        self._log.use("info", config.log_format)
        self._credentials: Credentials | None = None  # from when it listens, if it speaks TLS

    def run(self) -> int:
        """Start the node, and serve until told to end; return the exit status, of which exits.py has a list.

        Says in one line what keeps it from starting.
        """
        config = self._config
        privileges.forbid_core_dumps()
        notifier = Notifier.from_environ(os.environ)
        try:
            listeners = inherited(os.environ, os.getpid())
            heir = self._heir(is_local=not listeners and exposure.is_local(config))
            ground = Ground(config, listeners, functools.partial(self._settle, heir))
        except (sockets.AddressError, StateError) as error:
            print(f"skywalker: {error}", file=sys.stderr)
            return exits.ADDRESS if isinstance(error, sockets.AddressError) else exits.STATE
        with contextlib.closing(ground):
            rename(node_name(ground.addresses[JUNCTION][1]))
            sockets.allow_many_files()
            self._log.use(config.log_level, config.log_format)
            self._warn(len(ground.listeners))
            return Supervisor(
                config,
                ground,
                self._credentials,
                _assemble,
                self._log,
                MACHINE,
                notifier=notifier,
                parent=socket.socket(fileno=self._parent_fd) if self._parent_fd >= 0 else None,
                read_again=self._read_again,
            ).run()

    def _heir(self, *, is_local: bool) -> struct_passwd | None:
        """Return whom to become, None if nobody else. Raises ConfigError if root has to say, and has not."""
        if not (is_local and privileges.is_undecided(self._config.user)):
            return privileges.heir(self._config.user)
        advice = "say by --user whom it is to become, or root"
        try:
            nobody = privileges.heir(privileges.NOBODY)
            assert nobody is not None, "that is not root"
            privileges.trial(nobody, self._look_around)
        except ConfigError as error:
            self._log.warning("stays-root", reason=error, advice=advice)
            return None
        self._log.warning("leaves-root", user=nobody.pw_name, advice=advice)
        return nobody

    def _look_around(self) -> None:
        """Read and write what the node has to, as it would. Raises an exception if it may not."""
        state_at = state_path(self._config)
        journal = Path(self._config.journal) if self._config.journal else None
        with contextlib.ExitStack() as stack:
            for path in filter(None, (journal, state_at)):
                # Root, as which the node then goes on, takes no directory that belongs to somebody else.
                stack.enter_context(own_directory.removed_on_error(path))
            if self._config.tls_cert:
                server(self._config)
            if self._read_again is not None:
                self._read_again()
            if state_at is not None:
                state = StateDirectory(state_at)
                state.open(self._config.tokens)
                state.close()

    def _settle(self, heir: struct_passwd | None, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Be who the node is from now on, and see that all is well for them. Raises ConfigError."""
        exposure.check(self._config, addresses)
        if heir is not None:
            privileges.become(heir)
        try:
            if self._read_again is not None:
                self._read_again()
            self._credentials = Credentials.of(self._config, self._log, MACHINE.monotonic)
        except SkywalkerError as error:
            if heir is None:
                raise
            raise ConfigError(f"{error} ({privileges.told(heir)})") from error

    def _warn(self, workers: int) -> None:
        """Say what is in order, and yet may surprise."""
        config = self._config
        if config.cluster.secret_in_clear:
            self._log.warning(
                "secret-in-clear",
                reason="whoever poses as a node of the version before gets cluster.secret: take secret_in_clear away "
                "once no node is of that version, and then give all nodes another secret",
            )
        limits, group = config.limits, memory.of_group()
        needed = workers * memory.wanted(limits, workers)
        if group is not None and group < needed:
            advice = memory.advice(limits, workers, group // workers, "its control group more, by MemoryMax=")
            self._log.warning(
                "memory-short", there=memory.shown(group), needed=memory.shown(needed), advice=f"give {advice}"
            )
        if config.bares_tokens:
            self._log.warning("tokens-in-plain", reason="without tls_cert they can be read on their way here")


def _assemble(*given: Any) -> Program:
    from workers.agent import assembly  # only in the agent: it takes much that no worker needs

    return assembly.assemble(*given)
