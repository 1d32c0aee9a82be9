"""The methods of the MessagePack dialect: each takes a frame apart, checks it and does what it asks.

The core does a send!, recv!, :take!, :cancel and :ack that is good in every way. Here are those that are not as most
are, with a topic at length, or a float as timeout; those that are not good; those whose right is still to be looked up;
and all other methods.

A method raises the RequestError that its caller is to be answered with. A new one has its name in wire/junction.py,
and in EXTENSIONS of calls/own_node.py if :hello is to list it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skywalker import errors
from skywalker.access import principal as access
from skywalker.access.proof import NONCE, NotProven, Response
from skywalker.access.trust import MAX_REASON
from skywalker.address import Address
from skywalker.limits import MAX_ID
from skywalker.members import MAX_NAME
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame
from workers.access.admission import Impostor
from workers.calls.newcomer import introduced
from workers.core._core import KIND_RECV, KIND_SEND, KIND_TAKE
from workers.doors.junction.session import GOES_AWAY, Session
from workers.stats.close_reasons import Close

Arguments = list[bytes]
"""The whole frame: element zero is the method's own name."""

MAX_ADDRESS: Final = 300
"""Characters of the address of a node that joins: the longest host name, and a port."""

MAX_ECHOED_METHOD: Final = 64
"""Bytes of an unknown method that its error reply repeats."""

# Calls that are good, but not as most are: a topic at length, a float as timeout; or that are not good; or whose right
# is still to be looked up.


def send(client: Session, frame: Arguments) -> None:
    """`[":send!", id, timeout, topic, value]`, or with a timeout value before the topic."""
    if len(frame) not in (5, 6):
        raise bad_arity(frame, "5 or 6")
    refuse_reserved(frame[-1])
    _issue(client, KIND_SEND, frame, frame[-2], frame[-1], None)


def recv(client: Session, frame: Arguments) -> None:
    """`[":recv!", id, timeout, topic]`, or with a timeout value before the topic."""
    if len(frame) not in (4, 5):
        raise bad_arity(frame, "4 or 5")
    _issue(client, KIND_RECV, frame, frame[-1], None, None)


def take(client: Session, frame: Arguments) -> None:
    """`[":take!", id, timeout, topic, group]`."""
    arguments(frame, 5)
    _issue(client, KIND_TAKE, frame, frame[3], None, values.topic_bytes(frame[4]))


def _issue(
    client: Session, kind: int, frame: Arguments, topic: bytes, value: bytes | None, group: bytes | None
) -> None:
    _, id, timeout, *_ = frame
    if len(id) > MAX_ID:
        raise bad_id(id)
    try:
        seconds = values.timeout_seconds(timeout)
    except errors.BadTimeout:
        if client.knows_errors:
            raise
        seconds = values.nearest_timeout(timeout)
    topic = values.topic_bytes(topic)
    client.check(access.SEND if kind == KIND_SEND else access.RECV, topic)
    names_it = len(frame) == (6, 5, 0)[kind]
    client.core.issue(client.handle, kind, id, seconds, frame[3] if names_it else None, topic, value, group)


def will(client: Session, frame: Arguments) -> None:
    """`[":will!", id, timeout, topic, value]`: published if the connection is lost before the time is over."""
    _, id, timeout, name, testament = arguments(frame, 5)
    seconds = values.timeout_seconds(timeout)
    topic = values.topic_bytes(name)
    refuse_reserved(testament)
    client.check(access.SEND, topic)
    if client.standing.draining:
        raise errors.Draining(GOES_AWAY)
    why = client.core.will(client.handle, id, seconds, topic, testament)
    if why:
        raise client.too_much(why)


def cancel(client: Session, frame: Arguments) -> None:
    """`[":cancel", id, call-id]`: true if that call still waited, which is then answered `cancelled`."""
    _, id, call_id = arguments(frame, 3)
    client.core.cancel(client.handle, id, call_id)


def ack(client: Session, frame: Arguments) -> None:
    """`[":ack", call-id]`: the client has the value. Nothing is answered."""
    if len(frame) != 2:
        raise bad_arity(frame, "2")
    client.core.acknowledge(client.handle, frame[1])


def topic(client: Session, frame: Arguments) -> None:
    """`[":topic", id, topic]`: who waits there; the names of groups are for those who may take from them."""
    _, id, name = arguments(frame, 3)
    topic = values.topic_bytes(name)
    account, may_recv = client.account, True
    if account is not None:
        may = [each for each in access.ACTIONS if account.principal.may(each, topic)]
        if not may:
            raise account.forbidden("recv", "may do nothing on this topic")
        may_recv = access.RECV in may
    client.commons.owners.census(client, id, topic, may_recv)


def refuse_reserved(value: bytes) -> None:
    """Raise ReservedValue for a value that would be taken for an answer of the node."""
    if wire.is_reserved(value):
        raise errors.ReservedValue("a value of extension type 0x45 or 0x54 would be taken for an answer of the node")


def subscribe(client: Session, frame: Arguments) -> None:
    """`[":subscribe", id, topic]`: true, and from then on `[":message", id, value]` for each value."""
    _, id, name = arguments(frame, 3)
    if client.standing.draining and client.knows_errors:
        raise errors.Draining(GOES_AWAY)
    topic = values.topic_bytes(name)
    client.check(access.SUBSCRIBE, topic)
    client.subscribe(id, topic)


def unsubscribe(client: Session, frame: Arguments) -> None:
    """`[":unsubscribe", id, subscription-id]`: true if there was such a subscription."""
    _, id, subscription_id = arguments(frame, 3)
    client.unsubscribe(id, subscription_id)


def tokens(client: Session, frame: Arguments) -> None:
    """`[":tokens", id]`: the sorted tokens of this node."""
    _, id = arguments(frame, 2)
    client.reply(wire.TOKENS, id, client.commons.node.packed_tokens)


def ping(client: Session, frame: Arguments) -> None:
    """`[":ping", id]`: true; and `[":ping", nil, true]`, the answer to a probe of ours."""
    if len(frame) == 3 and frame[1] == wire.NIL:
        return
    _, id = arguments(frame, 2)
    client.reply(wire.PING, id, wire.TRUE)


def hello(client: Session, frame: Arguments) -> None:
    """`[":hello", id, {options}]`: what this node is, and from then on the options hold."""
    _, id, packed = arguments(frame, 3)
    client.learns_errors()
    options = _options(packed)
    name, acks = options.get("name", client.name), options.get("ack", client.acks)
    ring = options.get("ring", client.follows_ring)
    if not isinstance(name, str) or not isinstance(acks, bool) or not isinstance(ring, bool):
        raise errors.BadFrame("in the options of :hello `name` is a string, `ack` and `ring` are true or false")
    if len(name) > MAX_NAME:
        details = {"size": len(name), "limit": MAX_NAME}
        raise errors.BadFrame(
            f"`name` of {len(name)} characters in the options of :hello, limit is {MAX_NAME}", details
        )
    client.commons.admission.present(client, _token(options))
    client.reply(wire.HELLO, id, client.commons.node.packed_greeting)
    client.greeted(name, acks, ring)


def says_token(frame: Frame) -> bool:
    """Whether a :hello says whose it is: then that is so from now on, or its connection is closed."""
    options = _decoded(frame[2]) if len(frame) == 3 else None
    return isinstance(options, dict) and options.get("token") is not None


def nodes(client: Session, frame: Arguments) -> None:
    """`[":nodes", id]` or `[":nodes", id, after]`: the cluster as this node sees it, from that node's id on."""
    _, id, *rest = arguments(frame, 2, 3)
    after = _text(rest[0], "the node after which :nodes goes on") if rest else ""
    client.reply(wire.NODES, id, client.commons.node.packed_nodes(after))


def join(client: Session, frame: Arguments) -> None:
    """`[":join", id, address]`: true, and this node goes to see whether there is a node at that address."""
    _, id, packed = arguments(frame, 3)
    address = _text(packed, "the address of a node that joins")
    node = client.commons.node
    client.commons.admission.check_node(client)
    if node.heard is None:
        raise errors.Forbidden("this node is in no cluster that others may join: start it with --join")
    try:
        if len(address) > MAX_ADDRESS:
            raise errors.LocalProtocolError(f"an address of {len(address)} characters, limit is {MAX_ADDRESS}")
        known = Address.parse(address)
    except errors.LocalProtocolError as error:
        raise errors.BadFrame(str(error)) from error
    if all(member.address != known for member in node.snapshot) and not node.heard(known):
        raise errors.Busy("too many nodes join at a time")
    client.reply(wire.JOIN, id, wire.TRUE)


def challenge(client: Session, frame: Arguments) -> None:
    """`[":challenge", id, {...}]`: the proof that this node is one of its cluster, and what the other end has to prove.

    It is said at the beginning of a connection, by the node that has made it.
    """
    _, id, packed = arguments(frame, 3)
    known, node, reached = client.commons.admission.trust.secrets, client.commons.node, client.reached()
    missing = {"missing": "node"}
    if not known:
        raise errors.Forbidden("this node has no cluster.secret to prove itself by: give both the same", missing)
    if reached is None or client.response is not None:
        raise errors.BadFrame("a node proves itself once on each connection, and on none by a Unix socket")
    try:
        nonce = client.commons.machine.nonce(NONCE)
        client.response = Response(known, node.id, node.address, reached, _options(packed), nonce)
    except NotProven as error:
        raise errors.Unauthorized(str(error), missing) from error
    except ValueError as error:
        raise errors.BadFrame(str(error)) from error
    client.reply(wire.CHALLENGE, id, values.pack(client.response.answer))


def proof(client: Session, frame: Arguments) -> None:
    """`[":proof", id, mac]`: the other end proves in turn that it is a node. A text says why it takes us for none."""
    _, id, packed = arguments(frame, 3)
    told = _decoded(packed)
    admission, response = client.commons.admission, client.response
    if isinstance(told, str):
        admission.mistrusted.note(client.peer, f"whoever has dialled this node says of it: {told[:MAX_REASON]}")
        client.finish(b"", Close.PEER, "it takes this node for none of its cluster")
        return
    if response is None or not isinstance(told, bytes) or not response.accepts(told):
        raise Impostor("this does not prove that it is a node")
    admission.has_proved(client, response.secret)
    client.reply(wire.PROOF, id, wire.TRUE)


def peer(client: Session, frame: Arguments) -> None:
    """`[":peer", id, {...}]`: who was met; if that is who was wanted, a worker of another node has this connection."""
    _, id, packed = arguments(frame, 3)
    options = _options(packed)
    try:
        newcomer, wanted = introduced(client.peer, options, may_answer=client.may_answer_for_a_node)
    except ValueError as error:
        raise errors.BadFrame(str(error)) from error
    whose = newcomer.place.node
    client.commons.admission.check_node(client, _token(options))
    if client.response is not None and client.response.asker != whose:
        raise errors.BadFrame(f"node {client.response.asker} has proved itself here, and not {whose}")
    if not client.is_idle():
        raise errors.BadFrame("a connection that has calls cannot become one between nodes")
    met, is_wanted = client.commons.peers.meet(newcomer, wanted)
    client.reply(wire.PEER, id, values.pack(met))
    if is_wanted:
        client.commons.peers.welcome(*client.detach(), newcomer)


METHODS: Final[Mapping[bytes, Callable[[Session, Arguments], None]]] = {
    wire.SEND: send,
    wire.RECV: recv,
    wire.TAKE: take,
    wire.WILL: will,
    wire.CANCEL: cancel,
    wire.ACK: ack,
    wire.SUBSCRIBE: subscribe,
    wire.UNSUBSCRIBE: unsubscribe,
    wire.TOKENS: tokens,
    wire.TOPIC: topic,
    wire.PING: ping,
    wire.HELLO: hello,
    wire.NODES: nodes,
    wire.JOIN: join,
    wire.CHALLENGE: challenge,
    wire.PROOF: proof,
    wire.PEER: peer,
}


def name_of(frame: Frame) -> bytes:
    """Return the name of its method in canonical form. Raises BadFrame or UnknownMethod."""
    if isinstance(frame, BadFrame):
        raise errors.BadFrame(f"this is not a MessagePack array of a call: {frame.reason}")
    name = frame[0] if frame[0] in METHODS else _canonical_name(frame[0])
    if name is None:
        told = f'this node has no method {_named(frame[0])}: see "extensions" in the answer to :hello'
        raise errors.UnknownMethod(told)
    return name


def echo(frame: Frame) -> tuple[bytes, bytes]:
    """Return the method and the id that an error reply to this frame repeats, as far as they can be read."""
    if isinstance(frame, BadFrame):
        method, id = frame.method, frame.id
    else:
        method = frame[0]
        id = frame[1] if len(frame) > 1 else b""
    if canonical := _canonical_name(method):
        method = canonical
    elif not _is_short_text(method):
        method = wire.ERROR
    return method, id if 0 < len(id) <= MAX_ID else wire.NIL


def timed_out_of(frame: Frame) -> bytes:
    """Return what a send or receive wants to be answered with when its time is over."""
    method, _ = echo(frame)
    names_it = not isinstance(frame, BadFrame) and len(frame) == {wire.SEND: 6, wire.RECV: 5}.get(method)
    return frame[3] if names_it else wire.TIMED_OUT


def _canonical_name(method: bytes) -> bytes | None:
    """Return the canonical form of a method that may be encoded at length, None if there is no such method."""
    if not 0 < len(method) <= MAX_ECHOED_METHOD:
        return None
    canonical = values.canonical(method)
    return canonical if canonical in METHODS else None


def _named(method: bytes) -> str:
    """Return an unknown method as it is said to people: its name, if that is short and can be printed."""
    name = _decoded(method) if _is_short_text(method) else None
    return repr(name) if isinstance(name, str) and name.isprintable() else "of that name"


def _is_short_text(encoded: bytes) -> bool:
    return 0 < len(encoded) <= MAX_ECHOED_METHOD and (0xA0 <= encoded[0] < 0xC0 or 0xD9 <= encoded[0] <= 0xDB)


def arguments(frame: Arguments, *counts: int) -> Arguments:
    """Return the frame of a method that takes so many elements, with a short enough id."""
    if len(frame) not in counts:
        raise bad_arity(frame, " or ".join(map(str, counts)))
    if len(frame[1]) > MAX_ID:
        raise bad_id(frame[1])
    return frame


def bad_arity(frame: Arguments, wanted: str) -> errors.BadArity:
    """Return the error for a frame of so many elements, where so many are `wanted`."""
    method = values.unpack(frame[0])
    return errors.BadArity(f"{method} has {len(frame)} elements, it takes {wanted}")


def bad_id(id: bytes) -> errors.BadId:
    """Return the error for an id that is too long."""
    return errors.BadId(f"id of {len(id)} bytes, limit is {MAX_ID}", {"size": len(id), "limit": MAX_ID})


def _decoded(packed: bytes) -> Any:
    """Return a value, None also for one that Python has no form for."""
    try:
        return values.unpack(packed, text_keys=True)
    except ValueError:
        return None


def _options(packed: bytes) -> Mapping[Any, Any]:
    options = _decoded(packed)
    if not isinstance(options, dict):
        raise errors.BadFrame("the options are a map, in which names are strings")
    return options


def _token(options: Mapping[Any, Any]) -> str | bytes | None:
    token = options.get("token")
    if token is not None and not isinstance(token, str | bytes):
        raise errors.BadFrame("`token` in the options is a string")
    return token


def _text(packed: bytes, what: str) -> str:
    text = _decoded(packed)
    if not isinstance(text, str):
        raise errors.BadFrame(f"{what} is a string")
    return text
