"""What a node has before it has processes: listeners, at addresses that it has for itself, and who it is."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from skywalker import extras
from skywalker.address import Address
from skywalker.config import BY_KEY, Config
from skywalker.limits import DEFAULT_HOST
from skywalker.members import Member
from skywalker.state_path import usual_state_path
from workers.engine import sockets
from workers.engine.steering import steer
from workers.setup.identity import Identity, StateDirectory

JUNCTION: Final = "junction"
PUBSUB: Final = "pubsub"
"""The doors of a node, by the dialect that is spoken there."""

UNIX: Final = "unix"
"""A door for the same dialect as JUNCTION, on a Unix socket."""

ADMIN: Final = "admin"
"""Where its agent answers over HTTP."""


class Ground:
    """Held by the supervisor as long as the node runs; its children close their copies."""

    def __init__(
        self,
        config: Config,
        inherited: Mapping[str, list[socket.socket]] | None = None,
        once_listening: Callable[[Mapping[str, tuple[str, int]]], None] = lambda addresses: None,
    ) -> None:
        """`inherited` are listeners that a manager has opened, one for each worker, by door: see activation.py.
        `once_listening` is called with where it listens, when nothing is left that only root may do.

        Raises AddressError or StateError where something cannot be had.
        """
        inherited = inherited or {}
        self.outlived = list(inherited)  # by the listeners of these doors: who wants in just waits for the next node
        self._state: StateDirectory | None = None
        self.admin: socket.socket | None = None  # the listener of that door, if it could be had
        self._unix = "", 0, 0  # what is to be removed at the end, by which process, and that it is still ours
        self.listeners: list[dict[str, socket.socket]] = []  # for each worker, by door
        try:
            wanted = {JUNCTION: (config.bind, config.port)}
            if config.pubsub:
                wanted[PUBSUB] = config.pubsub_address
            for door, listeners in inherited.items():
                # Where the settings name no host, the manager does.
                is_free = config.pubsub_follows_bind if door == PUBSUB else config.bind == DEFAULT_HOST
                wanted[door] = _inherited_at(listeners[0], door, *wanted.get(door, config.pubsub_address), is_free)
                sockets.keep_to_ourselves(listeners)
            count = _workers(config, inherited)
            self.listeners = [{} for _ in range(count)]
            self.addresses: dict[str, tuple[str, int]] = {}  # by door
            self.steering = False
            for door, (host, port) in wanted.items():
                if door in inherited:
                    self._give(door, host, inherited[door], steer(inherited[door]))
                else:
                    self._give(door, host, *sockets.listeners(host, port, count, config.backlog))
            if config.unix:
                self._open_unix(config.unix, config.backlog)
            if config.admin and not extras.missing(extras.ADMIN):
                self._open_admin(config.admin_host, config.admin_port)
            assert all(wanted.keys() <= each.keys() for each in self.listeners), "each worker listens at each door"
            once_listening(self.addresses)
            identity = self._identify(config)
            host, port = self.addresses[JUNCTION]
            self.near = sockets.near(host, port)
            self.member = Member(
                id=identity.id,
                name=config.name or socket.gethostname(),
                address=sockets.advertised(config.cluster.advertise, host, port),
                workers=count,
                steering=self.steering,
                tokens=tuple(identity.tokens),
            )
        except BaseException:
            self.close()
            raise

    def _give(self, door: str, host: str, listeners: list[socket.socket], steering: bool) -> None:
        for of_worker, listener in zip(self.listeners, listeners, strict=True):
            of_worker[door] = listener
        self.addresses[door] = host, int(listeners[0].getsockname()[1])
        if door == JUNCTION:
            self.steering = steering

    def _open_unix(self, path: str, backlog: int) -> None:
        # One for all, since the kernel spreads nothing there: whoever is awake takes the next one.
        with sockets.unix_listener(path, backlog) as listener:
            self._unix = path, os.getpid(), os.stat(path).st_ino
            for of_worker in self.listeners:
                of_worker[UNIX] = listener.dup()

    def _open_admin(self, host: str, port: int) -> None:
        # One that another has keeps no node from starting: the agent says so, and waits for it.
        with contextlib.suppress(sockets.AddressError):
            self.admin = sockets.admin_listener(host, port)
            self.addresses[ADMIN] = host, int(self.admin.getsockname()[1])

    def _identify(self, config: Config) -> Identity:
        path = state_path(config)
        if path is None:
            return Identity.new(config.tokens)
        self._state = StateDirectory(path)
        return self._state.open(config.tokens)

    def close(self, *, but_admin: bool = False) -> None:
        """Give up this process's copies of the listener for ADMIN, of the Unix socket and of the state directory."""
        if self.admin is not None and not but_admin:
            self.admin.close()
        path, maker, inode = self._unix
        if maker == os.getpid():
            with contextlib.suppress(OSError):  # it may be gone, or in a directory that is not ours any more
                if os.lstat(path).st_ino == inode:
                    os.unlink(path)
        if self._state is not None:
            self._state.close()


def state_path(config: Config) -> Path | None:
    """Return where the node keeps its state; None if it keeps none."""
    return Path(config.state_dir) if config.state_dir else usual_state_path(config.bind, config.port)


_KEYS: Final = {JUNCTION: ("bind", "port"), PUBSUB: ("pubsub_bind", "pubsub_port")}


def _inherited_at(listener: socket.socket, door: str, bind: str, port: int, is_free: bool) -> tuple[str, int]:
    """Return where a manager listens for the door. Raises AddressError if the settings say otherwise.

    The port may differ if it is 0 or the default, and the host if it `is_free`.
    """
    at: tuple[str, int] = listener.getsockname()[:2]
    is_bound = is_free or sockets.resolve(bind, at[1])[1] == at
    if is_bound and port in (0, at[1], BY_KEY[_KEYS[door][1]].default):
        return at
    keys = " and ".join(_KEYS[door])
    raise sockets.AddressError(
        f"the manager passed listeners for {door} at {Address(*at)}, {keys} say {Address(bind, port)}: make them the "
        "same, in ListenStream= or in the settings, or leave those at their defaults"
    )


def _workers(config: Config, inherited: Mapping[str, list[socket.socket]]) -> int:
    for door, listeners in inherited.items():
        if config.workers not in (0, len(listeners)):
            raise sockets.AddressError(
                f"the manager passed {len(listeners)} listeners for {door}, workers is {config.workers}: "
                "give one ListenStream= for each worker"
            )
        return len(listeners)
    return config.workers or os.cpu_count() or 1
