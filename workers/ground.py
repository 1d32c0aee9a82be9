"""What a node has before it has processes: its address for itself alone, listeners on it, and who it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from skywalker.config import Config
from skywalker.members import Member
from workers import sockets
from workers.identity import Identity, StateDirectory, default_path


class Ground:
    """Held by the supervisor as long as the node runs; its children close their copies."""

    def __init__(self, config: Config) -> None:
        """Raises AddressError or StateError where that cannot be had."""
        self._state: StateDirectory | None = None
        self._lock = sockets.claim(config.bind, config.port)
        try:
            identity = self._identify(config)
            count = config.workers or os.cpu_count() or 1
            self.listeners, steering = sockets.listeners(config.bind, config.port, count, config.backlog)
            self.port = int(self.listeners[0].getsockname()[1])
            self.near = sockets.near(config.bind, self.port)
            self.member = Member(
                id=identity.id,
                name=config.name or socket.gethostname(),
                address=sockets.advertised(config.cluster.advertise, config.bind, self.port),
                workers=count,
                steering=steering,
                tokens=tuple(identity.tokens),
            )
        except BaseException:
            self.close()
            raise

    def _identify(self, config: Config) -> Identity:
        path = Path(config.state_dir) if config.state_dir else default_path(config.port)
        if path is None:
            return Identity.new(config.tokens)
        self._state = StateDirectory(path)
        return self._state.open(config.tokens)

    def close(self) -> None:
        """Give up this process's copies of the claims to the address and to the state directory."""
        self._lock.close()
        if self._state is not None:
            self._state.close()
