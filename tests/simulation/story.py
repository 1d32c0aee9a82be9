"""What happened to some calls of a run, in words: who said what to whom, and what was done to those involved."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from skywalker.wire.frames import split
from tests.simulation.ends import End
from tests.simulation.kernel import BEGIN, NEVER
from workers.mesh import messages

VALUE: Final = re.compile(r"(?:caller|pair|pubsub|program|broker)\d+\.\d+")
CALL: Final = re.compile(r":\w+! \d+ of \w+")
CLIENT: Final = re.compile(r"^(?:caller|pair|pubsub|program|broker)\d+(?:\.\d+)?$")

LENGTH_BYTES: Final = 4
"""Of the length that a message between workers begins with."""

HEAD: Final = struct.Struct("<IBBHQ")
"""Of what siblings say to each other, as message.c has it: size, kind, what it has, size of its topic, and number."""

NUMBER: Final = (1 << 56) - 1
"""What of a number is not its kind."""

ELEMENTS: Final = {
    messages.SEND: "nstv", messages.LISTEN: "nstv", messages.WITHDRAW: "nb", messages.PUBLISH: "ntvf",
    messages.SUBSCRIBE: "tv", messages.CENSUS: "nt", messages.GIVE: "nv", messages.COUNTED: "nv",
    messages.OFFER: "tnvf",
    messages.TAKEN: "nl", messages.DOUBT: "nl", messages.INQUIRE: "nl", messages.UNACKED: "nb",
    messages.SUBSCRIBED: "t", messages.LAGGED: "t", messages.LONG: "nm", messages.REFUSED: "nm", messages.VISIT: "nv",
    messages.MOVED: "nl", messages.REST: "ntv",
    messages.RELAY: "nv", messages.SPLIT: "ntl", messages.CUT: "nl",
}  # fmt: skip
"""What a message has behind its kind, in the letters of message.c; a number, unless it is here."""

NEAR_S: Final = 1.0
"""Seconds from the first to the last word of a call around which it matters what was done to processes."""

PUBSUB_PORT: Final = 27022

TO_THE_OWNER: Final[dict[int, str]] = {
    messages.SEND: "asks, as ({no}), to hand out {1} on {0}",
    messages.LISTEN: "listens, as ({no}), on {0}",
    messages.WITHDRAW: "takes ({no}) back",
    messages.TOOK: "says that the listener of ({no}) has the value",
    messages.LOST: "says that the listener of ({no}) is gone",
    messages.LONG: "says that ({no}) takes no more than {0} bytes",
    messages.CENSUS: "asks, as ({no}), how many are on {0}",
    messages.PUBLISH: "asks, as ({no}), to publish {1} on {0}",
    messages.VISIT: "asks, as ({no}), to be visited by its successor",
    messages.INQUIRE: "asks, as ({no}), what is known of what the dead {0} handed out",
}
TO_THE_HOME: Final[dict[int, str]] = {
    messages.GIVE: "gives ({no}) the value {0}",
    messages.ALSO: "gives ({no}) that value, too",
    messages.MET: "says that ({no}) was taken",
    messages.WITHDRAWN: "says that ({no}) had met nobody when it was taken back",
    messages.BUSY: "says that there is no room for ({no})",
    messages.COUNTED: "says what ({no}) asked",
    messages.RECALL: "asks back the value that it gave ({no})",
    messages.REFUSED: "says that what listens takes no value as long as that of ({no})",
}
TO_ALL: Final[dict[int, str]] = {
    messages.SUBSCRIBE: "says that {0} clients of it subscribe to {no}",
    messages.SUBSCRIBED: "says that it counts them as subscribers to {no}",
    messages.OFFER: "gives subscribers to {no} the value {1}",
    messages.LAGGED: "says that some values on {no} are lost",
    messages.SETTLED: "says that this was all from before",
    messages.RETIRED: "says that it hands out nothing more, but a successor does",
    messages.PARTING: "says that it goes, as is planned",
    messages.TAKEN: "says that ({no}), which waited at {0}, was taken",
    messages.DOUBT: "says that ({no}) may have been taken, and nobody will say so",
    messages.OUT: "says that ({no}) was given to another node, or is to be acknowledged",
    messages.MOVE: "offers its connection {no}, whose calls wait there",
    messages.MOVED: "says of the connection {no} which it is there: {0}",
    messages.REST: "has a call of the connection {no} wait there, with {1} on {0}",
    messages.ARRIVE: "passes the connection {no} on, or has lost it",
    messages.RELAY: "says of the stream {no}: {0}",
    messages.SPLIT: "has the subscription {no} to {0} of the worker of life {1} end there, and begin here",
    messages.CUT: "says that the subscription {no} of the worker of life {0} ends there, and begins where it went",
    messages.UNACKED: "says that ({no}) has its value, and is to acknowledge it: {0}",
}
"""What a message between workers means, by its kind: {no} is its number, or what is there, and then what follows."""


@dataclass
class Line:
    """Something that happened, and the calls, values and numbers that it concerns."""

    at: float
    who: str
    what: str
    about: frozenset[str]

    def __str__(self) -> str:
        return f"{self.at - BEGIN:11.6f}  {self.who} {self.what}"


class Story:
    """Listens to a run, and has it all."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._rests: dict[End, bytes] = {}  # of what was written to each end, what is no whole message yet
        self._peers: dict[End, None] = {}  # ends to which another node's worker speaks

    def note(self, at: float, who: str, what: str) -> None:
        """Something happened."""
        self.lines.append(Line(at, who, what, frozenset(VALUE.findall(what) + CALL.findall(what))))

    def wrote(self, at: float, writer: str, reader: str, end: End, data: bytes, arrives_at: float) -> None:
        """A process wrote something to what another has the other end of."""
        if CLIENT.match(writer):
            return  # it has told that itself
        said = [*self._messages(writer, reader, end, data)]
        late = f" (there at {arrives_at - BEGIN:.6f})" if arrives_at - at > 0.001 else ""
        for text, about in said:
            self.lines.append(Line(at, f"{writer} -> {reader}", text + late, frozenset(about)))

    def _messages(self, writer: str, reader: str, end: End, data: bytes) -> Iterator[tuple[str, set[str]]]:
        if end.packets and data.startswith(b'["'):
            name, fields = json.loads(data)
            yield f"orders {name} {fields or ''}", set()
        elif end.packets:
            for message in _flat(data):
                yield _meant(message, writer, reader)
        elif PUBSUB_PORT in (end.name[1], end.peer.name[1] if end.peer else 0):
            if found := VALUE.findall(data.decode("latin-1")):
                yield f"hands over {', '.join(found)}", set(found)
        else:
            yield from self._streamed(writer, reader, end, data)

    def _streamed(self, writer: str, reader: str, end: End, data: bytes) -> Iterator[tuple[str, set[str]]]:
        data = self._rests.get(end, b"") + data
        while data:
            width = LENGTH_BYTES if end in self._peers else 2
            size = width + int.from_bytes(data[:width], "big")
            if len(data) < size:
                break
            [frame], _ = split(data[:size], width)
            data = data[size:]
            if width == LENGTH_BYTES:
                yield _meant([_plain(each) for each in frame], writer, reader)
                continue
            elements = [_plain(each) for each in frame]
            if elements[0] == ":peer":
                self._peers[end] = None
                yield "greets it, as one node does another", set()
            else:
                yield _answered(elements, reader)
        self._rests[end] = data

    def about(self, broken: Iterable[str]) -> Iterator[str]:
        """Yield the lines about calls and values that are named in these, and about processes meanwhile."""
        text = " ".join(broken)
        wanted = {*VALUE.findall(text), *CALL.findall(text)}
        for _ in range(3):  # a value leads to numbers that workers have given it, and these to more
            for line in self.lines:
                if line.about & wanted:
                    wanted |= line.about
        times = [line.at for line in self.lines if line.about & wanted] or [0.0, NEVER]
        begin, end = times[0] - NEAR_S, times[-1] + NEAR_S
        for line in self.lines:
            if line.about & wanted or (not line.about and begin <= line.at <= end):
                yield str(line)


def _plain(packed: bytes) -> Any:
    try:
        return msgpack.unpackb(packed, strict_map_key=False)
    except (ValueError, TypeError):  # it is none, or has a map whose keys are no keys of a dict
        return packed


def _answered(elements: list[Any], reader: str) -> tuple[str, set[str]]:
    """Return what a client is told, and what that is about."""
    method, id, result = (*elements, None, None)[:3]
    if isinstance(result, msgpack.ExtType):
        result = f"error {msgpack.unpackb(result.data, strict_map_key=False) if result.data else result.code}"
    text = f"answers {method} {id}: {result}"
    return text, {*VALUE.findall(text), f"{method} {id} of {reader}"}


def _flat(packet: bytes) -> Iterator[list[Any]]:
    """Yield the messages of a packet from one sibling to another, each as it would be unpacked between nodes."""
    at = 0
    while at < len(packet):
        size, kind, has, topic_size, number = HEAD.unpack_from(packet, at)
        data, at = packet[at + HEAD.size : at + size], at + size
        found: dict[str, Any] = {"n": number & NUMBER, "b": bool(has & 1)}
        for flag, name, width in ((2, "s", 8), (4, "l", 8), (64, "whose", 8), (8, "m", 4), (16, "f", 4)):
            if has & flag:
                found[name], data = int.from_bytes(data[:width], "little") & NUMBER, data[width:]
        form = found.get("f", 0)
        topic, value = data[form : form + topic_size], data[form + topic_size :]
        found |= {"f": None, "t": _plain(topic) if topic else None, "v": _plain(value) if has & 32 else None}
        yield [kind, *(found.get(each) for each in ELEMENTS.get(kind, "n"))]


def _meant(message: list[Any], writer: str, reader: str) -> tuple[str, set[str]]:
    """Return what one worker says to another, in words, and what that is about."""
    kind, number, *rest = message
    if kind == messages.RELAY and isinstance(rest[0], bytes):
        rest = [f"{len(rest[0])} bytes, with {', '.join(VALUE.findall(rest[0].decode('latin-1'))) or 'no value'}"]
    fields = [each.decode("latin-1") if isinstance(each, bytes) else each for each in rest]
    asker, owner = (writer, reader) if kind in TO_THE_OWNER else (reader, writer)
    meanings: Callable[[int], str] = {**TO_THE_OWNER, **TO_THE_HOME, **TO_ALL}.__getitem__
    if kind in (messages.SEND, messages.LISTEN, messages.PUBLISH):
        fields = fields[1:] if kind != messages.PUBLISH else fields  # without the time since when
    text = meanings(kind).format(*fields, *[None] * 4, no=number)
    about = set(VALUE.findall(text))
    if kind not in TO_ALL:
        about.add(f"{asker}, {owner}: {number}")
    return text, about
