"""The ZeroMQ sockets of one node: one takes messages, one broadcasts, one listens, and for each peer there is one.

Nothing here waits: what a peer does not take in time is dropped, and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any, Final

import zmq
from zmq.auth.asyncio import AsyncioAuthenticator

from skywalker.errors import ConfigError
from skywalker.listeners import reason, unix_reason
from skywalker.silk.endpoints import HERE, Origin, address_of, canonical, is_ipv6
from skywalker.silk.keys import Keys
from skywalker.silk.machine import Machine
from skywalker.wire.silk import INTERNAL, MAX_MESSAGE

MAX_SOCKETS: Final = 8192
"""One for each peer, and one for each endpoint where one may be."""

MAX_FRAME: Final = 4 * MAX_MESSAGE
"""Bytes of a frame that are read at all; ZeroMQ ends the connection of who sends more."""

MAX_UNREAD: Final = 16
"""Messages of one connection that wait to be read; the rest waits at the sender. A frame may have 4 MiB."""

MAX_UNHEARD: Final = 128
"""The same for what is broadcast. A sender keeps a thousand more for who lags behind, and then skips it."""

HANDSHAKE_MS: Final = 5000
"""Milliseconds for whoever connects to show the keys, or at least to speak as ZeroMQ does."""

FILES_OF_A_MEMBER: Final = 5
"""Open files: a socket, and the connections to it and from it, for direct messages and for what is broadcast."""

FILES_BESIDES: Final = 320
"""Open files for all else: three for each of those that this node looks for, and what a program has open anyway."""

LINGER_MS: Final = 300
"""Milliseconds that last words get to leave a node."""

CONNECT_MS: Final = 1000
"""Milliseconds for a connection to be made. The kernel tries again ever more rarely, and a cut would outlast itself."""

IDLE_S: Final = 15
PROBE_S: Final = 5
PROBES: Final = 3
"""Seconds without a word after which the kernel asks whether the other end is there, and between questions, and how
often it asks. Who only listens would never know, though the way be long forgotten by whatever is on it."""

UNHEARD_MS: Final = 1000 * (IDLE_S + PROBES * PROBE_S)
"""Milliseconds for the other end to say that it has what was sent: a kernel would wait for a quarter of an hour."""

RECONNECT_MS: Final = 250
RECONNECT_CAP_MS: Final = 1000
"""Milliseconds between attempts to reach a peer, the first and the longest."""


class Sockets:
    """From bind() to close(), in a running event loop. With keys, only who has them is let in."""

    def __init__(self, keys: Keys | None, machine: Machine) -> None:
        """Raises ConfigError if this process may have no more sockets."""
        self.dropped = 0  # messages that could not be sent
        self._keys = keys
        self._machine = machine
        self._context = machine.context()
        self._context.set(zmq.MAX_SOCKETS, MAX_SOCKETS)
        try:
            self._make(keys)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise ConfigError(f"no sockets can be had: {error.strerror} (see ulimit -n)") from error

    def _make(self, keys: Keys | None) -> None:
        waiting = self._machine.waiting(self._context)
        self._peers: dict[str, zmq.Socket[bytes]] = {}  # by endpoint
        self._authenticator: AsyncioAuthenticator | None = None
        if keys is not None:
            self._authenticator = AsyncioAuthenticator(self._context)
            self._authenticator.start()
            self._authenticator.configure_curve_callback(credentials_provider=_Insiders(keys.public))
        self._router = waiting.socket(zmq.ROUTER)
        self._pub = self._context.socket(zmq.PUB)
        self._sub = waiting.socket(zmq.SUB)
        self._sub.subscribe(INTERNAL)
        self._router.set(zmq.RCVHWM, MAX_UNREAD)
        self._router.set(zmq.SNDHWM, MAX_UNREAD)
        self._sub.set(zmq.RCVHWM, MAX_UNHEARD)
        for sock in (self._router, self._pub, self._sub):
            self._prepare(sock, is_server=sock is not self._sub)

    @property
    def room(self) -> int:
        """For how many members there are open files; at least some, as most programs have few open."""
        return max(16, (self._machine.most_files() - FILES_BESIDES) // FILES_OF_A_MEMBER)

    def bind(self, router: str, pub: str) -> tuple[str, str]:
        """Listen at two endpoints, port 0 for any free one; return what they are. Raises ConfigError."""
        return _bound(self._router, router), _bound(self._pub, pub)

    async def direct(self) -> tuple[bytes, Origin, bytes | None]:
        """Return the next message that was sent to us, and before it what answer() takes, and where it came from.

        The message is None if it is none.
        """
        sender, *frames = await self._router.recv_multipart(copy=False)
        return sender.bytes, *_read(frames)

    async def heard(self) -> tuple[None, Origin, bytes | None]:
        """Return None, and the next message that was broadcast and that we listen to, as direct() does."""
        _, *frames = await self._sub.recv_multipart(copy=False)
        return None, *_read(frames)

    def send(self, endpoint: str, frame: bytes) -> None:
        """Send a message to whoever is at an endpoint, as soon as that can be reached."""
        peer = self._peers.get(endpoint)
        try:
            if peer is None:
                peer = self._peers[endpoint] = self._context.socket(zmq.DEALER)
                self._prepare(peer, is_server=False)
                _connect(peer, endpoint)
            peer.send(frame, zmq.NOBLOCK)
        except zmq.ZMQError:
            # Too much waits for it, or it is an endpoint by its form only.
            self.dropped += 1

    def part(self, endpoint: str) -> None:
        """Send no more there; what is on its way goes out at once or never."""
        peer = self._peers.pop(endpoint, None)
        if peer is not None:
            peer.close(linger=LINGER_MS)

    def answer(self, sender: bytes | None, frame: bytes) -> None:
        """Send a message back the way on which one has come."""
        if sender is None:
            self.dropped += 1  # nothing goes back to who broadcasts
        else:
            sent = asyncio.ensure_future(self._router.send_multipart([sender, frame]))
            sent.add_done_callback(self._answered)

    def broadcast(self, type: str, frame: bytes) -> None:
        """Send a message to all who listen to its type."""
        self._pub.send_multipart([type.encode(), frame], zmq.NOBLOCK)

    def listen(self, endpoint: str) -> None:
        """Listen to what is broadcast at an endpoint."""
        try:
            _connect(self._sub, endpoint)
        except zmq.ZMQError:
            self.dropped += 1

    def ignore(self, endpoint: str) -> None:
        """Listen there no more."""
        with contextlib.suppress(zmq.ZMQError):  # it never was one
            self._sub.disconnect(endpoint)

    def want(self, type: str) -> None:
        """Listen to messages of this type, too."""
        self._sub.subscribe(type)

    async def close(self) -> None:
        """Close all of them, once the last words have had a moment to leave."""
        for endpoint in [*self._peers]:
            self.part(endpoint)
        self._router.close(linger=0)
        self._sub.close(linger=0)
        self._pub.close(linger=LINGER_MS)
        if self._authenticator is not None:
            self._authenticator.stop()
        await asyncio.get_running_loop().run_in_executor(None, self._context.term)

    def _answered(self, sent: asyncio.Future[Any]) -> None:
        if not sent.cancelled() and sent.exception() is not None:
            self.dropped += 1

    def _prepare(self, sock: zmq.Socket[Any], *, is_server: bool) -> None:
        sock.set(zmq.LINGER, 0)
        sock.set(zmq.MAXMSGSIZE, MAX_FRAME)
        sock.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        sock.set(zmq.CONNECT_TIMEOUT, CONNECT_MS)
        sock.set(zmq.TCP_KEEPALIVE, 1)
        sock.set(zmq.TCP_KEEPALIVE_IDLE, IDLE_S)
        sock.set(zmq.TCP_KEEPALIVE_INTVL, PROBE_S)
        sock.set(zmq.TCP_KEEPALIVE_CNT, PROBES)
        sock.set(zmq.TCP_MAXRT, UNHEARD_MS)
        sock.set(zmq.RECONNECT_IVL, RECONNECT_MS)
        sock.set(zmq.RECONNECT_IVL_MAX, RECONNECT_CAP_MS)
        if self._keys is not None:
            self._keys.guard(sock, is_server=is_server)


class _Insiders:
    """What ZeroMQ's authentication asks: whether a key is ours."""

    def __init__(self, public: bytes) -> None:
        self._public = public

    def callback(self, domain: str, key: bytes) -> bool:
        """Return whether this one is let in."""
        return key == self._public


def _read(frames: list[zmq.Frame]) -> tuple[Origin, bytes | None]:
    """Return where a message has come from, and the message, None if it is none."""
    if len(frames) != 1:
        return None, None
    address = str(frames[0].get("Peer-Address"))
    # Of a Unix socket ZeroMQ tells who is at the other end: localhost:uid:gid:pid.
    return HERE if address.startswith(f"{HERE}:") else canonical(address), frames[0].bytes


def _connect(sock: zmq.Socket[Any], endpoint: str) -> None:
    sock.set(zmq.IPV6, is_ipv6(endpoint))
    sock.connect(endpoint)


def _bound(sock: zmq.Socket[Any], endpoint: str) -> str:
    _check_free(endpoint)
    try:
        sock.set(zmq.IPV6, is_ipv6(endpoint))  # or an IPv4 address would come out as one of IPv6
        sock.bind(endpoint.removesuffix(":0") + (":*" if endpoint.endswith(":0") else ""))
    except zmq.ZMQError as error:
        known, at = OSError(error.errno, zmq.strerror(error.errno or 0)), address_of(endpoint)
        why = reason(known, at.host, at.port) if at else known.strerror
        raise ConfigError(f"cannot listen at {endpoint}: {why}") from error
    found = sock.getsockopt_string(zmq.LAST_ENDPOINT)
    return found.rstrip("\0")


def _check_free(endpoint: str) -> None:
    """Raise ConfigError for a path that somebody listens at: ZeroMQ would take it away from them."""
    if endpoint.startswith("ipc://"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            path = endpoint.removeprefix("ipc://")
            probe.connect(path)
            raise ConfigError(f"cannot listen at {endpoint}: {unix_reason(path)}")
