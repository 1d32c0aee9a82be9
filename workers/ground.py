"""What a node has before it has processes: its addresses for itself alone, listeners on them, and who it is."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from skywalker.config import Config
from skywalker.members import Member
from workers import sockets
from workers.admin import extra
from workers.admin.listener import listen
from workers.identity import Identity, StateDirectory, default_path

JUNCTION: Final = "junction"
PUBSUB: Final = "pubsub"
"""The doors of a node, by the dialect that is spoken there."""

ADMIN: Final = "admin"
"""Where its agent answers over HTTP."""


class Ground:
    """Held by the supervisor as long as the node runs; its children close their copies."""

    def __init__(self, config: Config) -> None:
        """Raises AddressError or StateError where that cannot be had."""
        self._state: StateDirectory | None = None
        self._locks: list[socket.socket] = []
        self._admin: socket.socket | None = None
        self.listeners: list[dict[str, socket.socket]] = []  # for each worker, by door
        try:
            wanted = {JUNCTION: (config.bind, config.port)}
            if config.pubsub:
                wanted[PUBSUB] = config.pubsub_address
            for host, port in wanted.values():
                self._locks.append(sockets.claim(host, port))
            identity = self._identify(config)
            count = config.workers or os.cpu_count() or 1
            self.listeners = [{} for _ in range(count)]
            self.addresses: dict[str, tuple[str, int]] = {}  # by door
            self.steering = False
            for door, (host, port) in wanted.items():
                self._open(door, host, port, config.backlog)
            if config.admin and not extra.missing():
                self._open_admin(config.admin_bind, config.admin_port)
            port = self.addresses[JUNCTION][1]
            self.near = sockets.near(config.bind, port)
            self.member = Member(
                id=identity.id,
                name=config.name or socket.gethostname(),
                address=sockets.advertised(config.cluster.advertise, config.bind, port),
                workers=count,
                steering=self.steering,
                tokens=tuple(identity.tokens),
            )
        except BaseException:
            self.close()
            raise

    def _open(self, door: str, host: str, port: int, backlog: int) -> None:
        made, steering = sockets.listeners(host, port, len(self.listeners), backlog)
        for of_worker, listener in zip(self.listeners, made, strict=True):
            of_worker[door] = listener
        self.addresses[door] = host, int(made[0].getsockname()[1])
        if door == JUNCTION:
            self.steering = steering

    def _open_admin(self, host: str, port: int) -> None:
        # One that another has keeps no node from starting: the agent says so, and waits for it.
        with contextlib.suppress(sockets.AddressError):
            self._admin = listen(host, port)
            self.addresses[ADMIN] = host, int(self._admin.getsockname()[1])

    def keep_admin(self) -> socket.socket | None:
        """Return the listener for ADMIN, if there is one; close() then leaves this process's copy open."""
        kept, self._admin = self._admin, None
        return kept

    def _identify(self, config: Config) -> Identity:
        path = Path(config.state_dir) if config.state_dir else default_path(config.port)
        if path is None:
            return Identity.new(config.tokens)
        self._state = StateDirectory(path)
        return self._state.open(config.tokens)

    def close(self) -> None:
        """Give up this process's copies of the claims to the addresses and to the state directory."""
        for lock in self._locks:
            lock.close()
        if self._admin is not None:
            self._admin.close()
        if self._state is not None:
            self._state.close()
