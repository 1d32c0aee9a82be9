"""A Silk node of plain ZeroMQ sockets and JSON, written from the seed's text alone: none of our code is in here."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import zmq

from tests.helpers import time_factor
from tests.silk import ground

Fields = dict[str, Any]

ANSWER_S = 5.0


class RawPeer:
    """One node. It does nothing by itself: each message is sent by the test that has it."""

    def __init__(self, *, id: str = "", name: str = "raw", keepalive_ms: int = 60_000) -> None:
        self.id = id or str(uuid.uuid4())
        self.name = name
        self.keepalive_ms = keepalive_ms
        self.messages: Fields = {}
        self._context = ground.here.context()
        self._router = self._bound(zmq.ROUTER)
        self._pub = self._bound(zmq.PUB)
        self._sub = self._context.socket(zmq.SUB)
        self._sub.subscribe("")
        self._dealers: dict[str, Any] = {}
        self._came: list[Fields] = []  # and nobody has asked for it yet
        self.endpoint, self.pub_endpoint = (
            sock.getsockopt_string(zmq.LAST_ENDPOINT) for sock in (self._router, self._pub)
        )

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=0)

    def _bound(self, kind: int) -> Any:
        sock = self._context.socket(kind)
        sock.bind("tcp://127.0.0.1:*")
        return sock

    @property
    def info(self) -> Fields:
        """Its node object."""
        return {
            "id": self.id,
            "name": self.name,
            "endpoints": {"router": self.endpoint, "pub": self.pub_endpoint},
            "keepalive": {"period": self.keepalive_ms},
            "messages": self.messages,
        }

    # What it says.

    def send_frames(self, endpoint: str, *frames: bytes) -> None:
        """Send whatever this is to a router endpoint."""
        if endpoint not in self._dealers:
            self._dealers[endpoint] = self._context.socket(zmq.DEALER)
            self._dealers[endpoint].connect(endpoint)
        self._dealers[endpoint].send_multipart([*frames])

    def send(self, endpoint: str, type: str, dest: str | None = None, **fields: Any) -> str:
        """Send a message to a router endpoint; return its id. Fields that are None are left out."""
        message = {"src": self.id, "dest": dest, "id": str(uuid.uuid4()), "type": type, **fields}
        message = {name: value for name, value in message.items() if value is not None}
        self.send_frames(endpoint, json.dumps(message).encode())
        return str(message.get("id"))

    def reply(self, endpoint: str, to: Fields, data: Any = None, **fields: Any) -> None:
        """Answer a message, with a `reply` unless told otherwise."""
        fields.setdefault("reply", to["id"])
        self.send(endpoint, "_reply", to["src"], data=data, **fields)

    def publish(self, type: str, **fields: Any) -> None:
        """Broadcast a message."""
        message = {"src": self.id, "dest": "_all", "id": str(uuid.uuid4()), "type": type, **fields}
        self.publish_frames(type.encode(), json.dumps(message).encode())

    def publish_frames(self, *frames: bytes) -> None:
        """Broadcast whatever this is."""
        self._pub.send_multipart([*frames])

    def join(self, endpoint: str, **fields: Any) -> Fields:
        """Become a member at an endpoint, and return the answer."""
        return self.answer_to(self.send(endpoint, "_join", data=self.info, **fields))

    # What others say.

    def listen(self, endpoint: str) -> None:
        """Listen to all that is broadcast at an endpoint."""
        self._sub.connect(endpoint)

    def answer_to(self, id: str, within: float = ANSWER_S) -> Fields:
        """Return the reply to a message, whichever way it comes."""
        return self.came(lambda message: message["type"] == "_reply" and message.get("reply") == id, within)

    def asked(self, type: str, within: float = ANSWER_S) -> Fields:
        """Return the next message of a type that has come to its router."""
        return self.came(lambda message: message["type"] == type and message["way"] == "router", within)

    def came(self, wanted: Callable[[Fields], bool], within: float = ANSWER_S) -> Fields:
        """Return the first message like this that was sent to it directly; `way` says to which of its sockets."""
        deadline = ground.here.now() + within * time_factor()
        while True:
            for message in self._came:
                if wanted(message):
                    self._came.remove(message)
                    return message
            if not self._take_in(deadline - ground.here.now()):
                raise AssertionError(f"no such message within {within} s, only {self._came}")

    def silence(self, seconds: float) -> list[Fields]:
        """Return all that was sent to it directly until nothing more came for so long."""
        while self._take_in(seconds):
            pass
        came, self._came = self._came, []
        return came

    def replies(self, seconds: float) -> list[Fields]:
        """Return the replies among what was sent to it directly until nothing more came for so long."""
        return [message for message in self.silence(seconds) if message["type"] == "_reply"]

    def heard(self, type: str, within: float = ANSWER_S, **fields: Any) -> list[bytes]:
        """Return the frames of the next broadcast of a type, with these fields."""
        deadline = ground.here.now() + within * time_factor()
        while ground.here.poll([self._sub], deadline - ground.here.now()):
            frames = self._sub.recv_multipart()
            message = json.loads(frames[-1])
            if frames[0] == type.encode() and fields.items() <= message.items():
                return frames
        raise AssertionError(f"no {type} was heard within {within} s")

    def _take_in(self, within: float) -> bool:
        ready = ground.here.poll([self._router, *self._dealers.values()], within)
        for sock in ready:
            way = "router" if sock is self._router else "dealer"
            frames = sock.recv_multipart()
            if way == "router":
                frames = frames[1:]  # the first is its sender's name among connections
            [frame] = frames
            self._came.append({**json.loads(frame), "way": way})
        return bool(ready)
