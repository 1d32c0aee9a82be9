"""Asking a member who is in its cluster, without being one. Blocks."""

from __future__ import annotations

import contextlib
import time
import uuid
from pathlib import Path
from typing import Final

import zmq

from skywalker.errors import RemoteProtocolError, Unreachable
from skywalker.silk.endpoints import endpoint as endpoint_of
from skywalker.silk.endpoints import is_ipv6
from skywalker.silk.info import NodeInfo
from skywalker.silk.keys import Keys, keys_of
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

ANSWER_S: Final = 2.0


def ask(endpoint: str, *, keys: Keys | str | Path | None = None, timeout: float = ANSWER_S) -> list[NodeInfo]:
    """Return all members of the cluster of whoever is at an endpoint, that one first.

    Of the others there is as much as it takes to talk to them. Raises LocalProtocolError for what is no endpoint,
    ConfigError for keys that cannot be read, Unreachable if nobody answers within `timeout` seconds.
    """
    where = endpoint_of(endpoint)
    pair = keys_of(keys)
    question = Message(str(uuid.uuid4()), "", str(uuid.uuid4()), wire.MEMBERS)
    deadline = time.monotonic() + timeout
    with zmq.Context() as context, context.socket(zmq.DEALER) as sock:
        sock.set(zmq.LINGER, 0)
        sock.set(zmq.MAXMSGSIZE, wire.MAX_MESSAGE)
        if pair is not None:
            sock.curve_publickey, sock.curve_secretkey, sock.curve_serverkey = pair.public, pair.secret, pair.public
        try:
            sock.set(zmq.IPV6, is_ipv6(where))
            sock.connect(where)
        except zmq.ZMQError as error:
            raise Unreachable(f"{where}: {error.strerror}") from error
        sock.send(question.encode())
        while (left := deadline - time.monotonic()) > 0 and sock.poll(round(left * 1000)):
            with contextlib.suppress(RemoteProtocolError):
                found = _members(Message.decode(sock.recv()), question)
                if found:
                    return found
    hint = "" if pair is None else ", nobody with these keys at least"
    raise Unreachable(f"{where}: no node answered within {timeout:g} s{hint}")


def _members(answer: Message, question: Message) -> list[NodeInfo]:
    match answer.data:
        case {"me": me, "cluster": dict(cluster)} if answer.reply == question.id:
            return [info for info in map(NodeInfo.parse, [me, *cluster.values()]) if info is not None]
    return []
