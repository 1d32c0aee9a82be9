"""Asking a member who is in its cluster, without being one. Blocks."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Final

import zmq

from skywalker.errors import ConfigError, RemoteProtocolError, Unreachable
from skywalker.silk.endpoints import endpoint as endpoint_of
from skywalker.silk.endpoints import is_ipv6
from skywalker.silk.info import NodeInfo
from skywalker.silk.keys import Keys, hint, keys_of
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

ANSWER_S: Final = 2.0


def ask(endpoint: str, *, keys: Keys | str | Path | None = None, timeout: float = ANSWER_S) -> list[NodeInfo]:
    """Return all members of the cluster of whoever is at an endpoint, that one first.

    Of the others there is as much as it takes to talk to them. Raises LocalProtocolError for what is not an endpoint,
    ConfigError for keys that cannot be read or where no socket can be had, Unreachable if nobody answers within
    `timeout` seconds.
    """
    where = endpoint_of(endpoint)
    pair = keys_of(keys)
    question = Message(wire.new_id(), "", wire.new_id(), wire.MEMBERS)
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        try:
            context = stack.enter_context(zmq.Context())
            sock = stack.enter_context(context.socket(zmq.DEALER))
        except zmq.ZMQError as error:
            raise ConfigError(f"no socket to ask by can be had: {error.strerror} (see ulimit -n)") from error
        sock.set(zmq.LINGER, 0)
        sock.set(zmq.MAXMSGSIZE, wire.MAX_MESSAGE)
        sock.set(zmq.SNDTIMEO, round(timeout * 1000))
        if pair is not None:
            pair.guard(sock, is_server=False)
        try:
            sock.set(zmq.IPV6, is_ipv6(where))
            sock.connect(where)
        except zmq.ZMQError as error:
            raise Unreachable(f"{where}: {zmq.strerror(error.errno or 0)}") from error
        with contextlib.suppress(zmq.Again):  # nothing can be said between a handshake that failed and the next one
            sock.send(question.encode())
        while (left := deadline - time.monotonic()) > 0 and sock.poll(round(left * 1000)):
            with contextlib.suppress(RemoteProtocolError):
                found = _members(Message.decode(sock.recv()), question)
                if found:
                    return found
    raise Unreachable(f"{where}: no node answered within {timeout:g} s, {hint(pair)}")


def _members(answer: Message, question: Message) -> list[NodeInfo]:
    match answer.data:
        case {"me": me, "cluster": dict(cluster)} if answer.reply == question.id:
            first = NodeInfo.parse(me)
            if first is not None:
                return [first, *(info for info in map(NodeInfo.parse, cluster.values()) if info is not None)]
    return []
