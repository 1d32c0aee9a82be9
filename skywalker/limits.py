"""Every limit, with its unit and its reason, and the defaults that several parts share.

The MAX_* constants are the contract on the wire: both sides hold them and nobody can change
them. `Limits` are a node's own bounds; its defaults fit a machine with one core and
512 MiB, and each is a setting of `skywalker serve`.
"""

from __future__ import annotations

import dataclasses
from typing import Final, TypeVar

KIB: Final = 1024
MIB: Final = 1024 * KIB

MAX_FRAME: Final = 65_535
"""Bytes of a frame's body: the length in front of it has 16 bits."""

MAX_ID: Final = 32
"""Bytes of an encoded message id: room for a UUID in text-free form, twice."""

MAX_TOPIC: Final = 4 * KIB
"""Bytes of a topic in canonical MessagePack; a group name likewise."""

MAX_TIMEOUT_MS: Final = 86_400_000
"""Milliseconds a call may wait: one day."""

MAX_DEPTH: Final = 512
"""Containers within containers in one value: what every common MessagePack reader can take."""

MAX_ARGUMENTS: Final = 6
"""Elements of the longest call, `[":send!", id, timeout, timeout-value, topic, value]`."""

MAX_UNREADABLE: Final = 16
"""Unreadable frames of one connection; the last one closes it, since it plainly speaks something else."""

DEFAULT_HOST: Final = "127.0.0.1"
"""Where a node listens, and is looked for, unless told otherwise: nobody outside the machine gets there."""

DEFAULT_PORT: Final = 3443
"""The TCP port of the MessagePack dialect."""

DEFAULT_PUBSUB_PORT: Final = 61_626
"""The TCP port of the pub/sub dialect."""

DEFAULT_SILK_PORT: Final = 3444
"""The TCP port of the Silk dialect, where a node takes direct messages."""

DEFAULT_ADMIN_PORT: Final = 3480
"""The TCP port of the figures and the console, over HTTP."""

DEFAULT_ADDRESS: Final = f"{DEFAULT_HOST}:{DEFAULT_PORT}"

DEFAULT_TIMEOUT_S: Final = 60.0
"""Seconds that a call waits for a partner, unless told otherwise."""

DEFAULT_CONTROL_TIMEOUT_S: Final = 10.0
"""Seconds that the node has to answer a call that waits for nobody, unless told otherwise."""

T = TypeVar("T")


def setting(default: T, help: str, *, secret: bool = False) -> T:
    """Return a dataclass field that carries its one-line description, from which flags and docs are made.

    A `secret` has no flag, since everybody sees the command line of a process, and is shown nowhere.
    """
    return dataclasses.field(default=default, repr=not secret, metadata={"help": help, "secret": secret})


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What one worker allows. Names end in their unit where they are not a count; buffers are of bytes.

    It is held where it is counted: max_calls and waiting_bytes in core/held.c, max_connections in doors/clients.py,
    what one principal may in core/rights.c and access/account.py.
    """

    max_connections: int = setting(10_000, "connections open at a time, in each worker")
    max_calls: int = setting(10_000, "calls in flight on one connection, and its subscriptions")
    max_rate: int = setting(0, "calls or messages per second of one connection; 0 means no limit")
    max_strangers: int = setting(1_000, "connections that have not finished the handshake, or not said who they are")
    waiting_bytes: int = setting(128 * MIB, "memory for calls that wait and for subscriptions, in each worker")
    output_bytes: int = setting(256 * KIB, "unread or unacknowledged values after which a connection gets no more")
    mesh_bytes: int = setting(16 * MIB, "calls and values queued for one other worker")
    subscriber_buffer: int = setting(8 * MIB, "unread values after which a connection that subscribes is closed")
    greeting_s: float = setting(2.0, "time to finish the handshake, and to say who it is where that matters")
    half_frame_s: float = setting(10.0, "time for the rest of a frame to arrive")
    unread_output_s: float = setting(30.0, "time in which a peer must read some of its replies")
    max_plain_reply: int = setting(MAX_FRAME, "bytes of a reply to a client that never said :hello")
    link_idle_s: float = setting(60.0, "seconds after which a connection to another node that nobody uses is closed")
    max_links: int = setting(
        2_048, "workers of other nodes above which some are reached through siblings; 0 means none"
    )
    idle_probe_s: float = setting(60.0, "seconds of silence after which a peer that waits for a reply is probed")
    max_moves: int = setting(200, "connections per second that follow their calls to another worker; 0 means none")


WAITING_CALL_BYTES: Final = 512
"""Bytes counted for a waiting call besides its topic and value: more than it takes, also where two workers hold it."""
