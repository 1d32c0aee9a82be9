"""The methods of the MessagePack dialect: each takes a frame apart, checks it and does what it asks.

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
from skywalker.journal import record
from skywalker.limits import MAX_ID
from skywalker.members import MAX_NAME, Place
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame
from skywalker.wire.junction import TIMED_OUT, is_reserved
from skywalker.wire.values import nearest_timeout, timeout_seconds, topic_bytes
from workers.access.admission import Impostor
from workers.calls.call import client_call
from workers.calls.own_node import VERSION
from workers.calls.states import ENDING
from workers.calls.will import Will
from workers.doors.junction.session import Session
from workers.stats.close_reasons import Close

Arguments = list[bytes]
"""The whole frame: element zero is the method's own name."""

MAX_ADDRESS: Final = 300
"""Characters of the address of a node that joins: the longest host name, and a port."""

MAX_ECHOED_METHOD: Final = 64
"""Bytes of an unknown method that its error reply repeats."""


def send(session: Session, frame: Arguments) -> None:
    """`[":send!", id, timeout, topic, value]`, or with a timeout value before the topic."""
    if len(frame) == 5:
        _, id, timeout, topic, value = frame
        timed_out = TIMED_OUT
    elif len(frame) == 6:
        _, id, timeout, timed_out, topic, value = frame
    else:
        raise bad_arity(frame, "5 or 6")
    refuse_reserved(value)
    _issue(session, id, timeout, timed_out, topic, value, None)


def recv(session: Session, frame: Arguments) -> None:
    """`[":recv!", id, timeout, topic]`, or with a timeout value before the topic."""
    if len(frame) == 4:
        _, id, timeout, topic = frame
        timed_out = TIMED_OUT
    elif len(frame) == 5:
        _, id, timeout, timed_out, topic = frame
    else:
        raise bad_arity(frame, "4 or 5")
    _issue(session, id, timeout, timed_out, topic, None, None)


def take(session: Session, frame: Arguments) -> None:
    """`[":take!", id, timeout, topic, group]`."""
    _, id, timeout, topic, group = arguments(frame, 5)
    _issue(session, id, timeout, TIMED_OUT, topic, None, topic_bytes(group))


def _issue(
    session: Session,
    id: bytes,
    timeout: bytes,
    timed_out: bytes,
    topic: bytes,
    value: bytes | None,
    group: bytes | None,
) -> None:
    """Have a new call on its way. Raises what forbids it."""
    if len(id) > MAX_ID:
        raise bad_id(id)
    try:
        seconds = timeout_seconds(timeout)
    except errors.BadTimeout:
        if session.knows_errors:
            raise
        seconds = nearest_timeout(timeout)
    topic = topic_bytes(topic)
    if session.account is not None:
        session.account.check(access.RECV if value is None else access.SEND, topic)
    standing = session.standing
    if standing.leaving and not session.knows_errors:
        return  # it is about to be closed, and makes the call again elsewhere
    now = session.turn.now
    call = client_call(session, id, timed_out, topic, now, now + seconds, value, group)
    if standing.draining and session.knows_errors:
        call.close(record.DRAINING)
        raise errors.Draining("this worker is going away")
    try:
        session.routing.issue(call)
    except errors.Busy:
        call.close(record.BUSY)
        raise


def refuse_reserved(value: bytes) -> None:
    """Raise ReservedValue for a value that would be taken for an answer of the node."""
    if is_reserved(value):
        raise errors.ReservedValue("a value of extension type 0x45 or 0x54 would be taken for an answer of the node")


def will(session: Session, frame: Arguments) -> None:
    """`[":will!", id, timeout, topic, value]`: published if the connection is lost before the time is over."""
    _, id, timeout, name, testament = arguments(frame, 5)
    seconds = timeout_seconds(timeout)
    topic = topic_bytes(name)
    refuse_reserved(testament)
    if session.account is not None:
        session.account.check(access.SEND, topic)
    if session.standing.draining:
        raise errors.Draining("this worker is going away")
    now = session.turn.now
    call = Will.__new__(Will)
    call.begin(topic, now, None, None)
    call.begin_for(session, id, TIMED_OUT, now + seconds)
    call.begin_with(testament)
    call.begin_waiting()


def cancel(session: Session, frame: Arguments) -> None:
    """`[":cancel", id, call-id]`: true if that call still waited, which is then answered `cancelled`."""
    _, id, call_id = arguments(frame, 3)
    call = session.find(call_id)
    if call is None or call.state == ENDING:
        session.given_back(call_id)
        session.reply(wire.CANCEL, id, wire.FALSE)
    else:
        call.give_up(id)


def subscribe(session: Session, frame: Arguments) -> None:
    """`[":subscribe", id, topic]`: true, and from then on `[":message", id, value]` for each value."""
    _, id, name = arguments(frame, 3)
    if session.standing.draining and session.knows_errors:
        raise errors.Draining("this worker is going away")
    topic = topic_bytes(name)
    if session.account is not None:
        session.account.check(access.SUBSCRIBE, topic)
    session.subscribe(id, topic)


def unsubscribe(session: Session, frame: Arguments) -> None:
    """`[":unsubscribe", id, subscription-id]`: true if there was such a subscription."""
    _, id, subscription_id = arguments(frame, 3)
    session.unsubscribe(id, subscription_id)


def ack(session: Session, frame: Arguments) -> None:
    """`[":ack", call-id]`: the client has the value. Nothing is answered."""
    if len(frame) != 2:
        raise bad_arity(frame, "2")
    session.acknowledged(frame[1])


def tokens(session: Session, frame: Arguments) -> None:
    """`[":tokens", id]`: the sorted tokens of this node."""
    _, id = arguments(frame, 2)
    session.reply(wire.TOKENS, id, session.commons.node.packed_tokens)


def topic(session: Session, frame: Arguments) -> None:
    """`[":topic", id, topic]`: who waits there; the names of groups are for those who may take from them."""
    _, id, name = arguments(frame, 3)
    topic = topic_bytes(name)
    account = session.account
    may = access.ACTIONS if account is None else [each for each in access.ACTIONS if account.principal.may(each, topic)]
    if account is not None and not may:
        raise account.forbidden("recv", "may do nothing on this topic")
    session.commons.router.census(session, id, topic, access.RECV in may)


def ping(session: Session, frame: Arguments) -> None:
    """`[":ping", id]`: true; and `[":ping", nil, true]`, the answer to a probe of ours."""
    if len(frame) == 3 and frame[1] == wire.NIL:
        return
    _, id = arguments(frame, 2)
    session.reply(wire.PING, id, wire.TRUE)


def hello(session: Session, frame: Arguments) -> None:
    """`[":hello", id, {options}]`: what this node is, and from then on the options hold."""
    _, id, packed = arguments(frame, 3)
    session.learns_errors()
    options = _options(packed)
    name, acks = options.get("name", session.name), options.get("ack", session.acks)
    ring = options.get("ring", session.follows_ring)
    if not isinstance(name, str) or not isinstance(acks, bool) or not isinstance(ring, bool):
        raise errors.BadFrame("in the options of :hello `name` is a string, `ack` and `ring` are true or false")
    if len(name) > MAX_NAME:
        details = {"size": len(name), "limit": MAX_NAME}
        raise errors.BadFrame(
            f"`name` of {len(name)} characters in the options of :hello, limit is {MAX_NAME}", details
        )
    session.commons.admission.present(session, _token(options))
    session.reply(wire.HELLO, id, session.commons.node.packed_greeting)
    session.greeted(name, acks, ring)


def nodes(session: Session, frame: Arguments) -> None:
    """`[":nodes", id]` or `[":nodes", id, after]`: the cluster as this node sees it, from that node's id on."""
    _, id, *rest = arguments(frame, 2, 3)
    after = _text(rest[0], "the node after which :nodes goes on") if rest else ""
    session.reply(wire.NODES, id, session.commons.node.packed_nodes(after))


def join(session: Session, frame: Arguments) -> None:
    """`[":join", id, address]`: true, and this node goes to see whether there is a node at that address."""
    _, id, packed = arguments(frame, 3)
    address = _text(packed, "the address of a node that joins")
    node = session.commons.node
    session.commons.admission.check_node(session)
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
    session.reply(wire.JOIN, id, wire.TRUE)


def challenge(session: Session, frame: Arguments) -> None:
    """`[":challenge", id, {...}]`: the proof that this node is one of its cluster, and what the other end has to prove.

    It is said at the beginning of a connection, by the node that has made it.
    """
    _, id, packed = arguments(frame, 3)
    known, node, reached = session.commons.admission.trust.secrets, session.commons.node, session.reached()
    missing = {"missing": "node"}
    if not known:
        raise errors.Forbidden("this node has no cluster.secret to prove itself by: give both the same", missing)
    if reached is None or session.response is not None:
        raise errors.BadFrame("a node proves itself once on each connection, and on none by a Unix socket")
    try:
        nonce = session.commons.machine.nonce(NONCE)
        session.response = Response(known, node.id, node.address, reached, _options(packed), nonce)
    except NotProven as error:
        raise errors.Unauthorized(str(error), missing) from error
    except ValueError as error:
        raise errors.BadFrame(str(error)) from error
    session.reply(wire.CHALLENGE, id, values.pack(session.response.answer))


def proof(session: Session, frame: Arguments) -> None:
    """`[":proof", id, mac]`: the other end proves in turn that it is a node. A text says why it takes us for none."""
    _, id, packed = arguments(frame, 3)
    told = _decoded(packed)
    admission, response = session.commons.admission, session.response
    if isinstance(told, str):
        admission.mistrusted.note(session.peer, f"whoever has dialled this node says of it: {told[:MAX_REASON]}")
        session.finish(b"", Close.PEER, "it takes this node for none of its cluster")
        return
    if response is None or not isinstance(told, bytes) or not response.accepts(told):
        raise Impostor("this does not prove that it is a node")
    admission.has_proved(session, response.secret)
    session.reply(wire.PROOF, id, wire.TRUE)


def peer(session: Session, frame: Arguments) -> None:
    """`[":peer", id, {...}]`: who was met; if that is who was wanted, a worker of another node has this connection."""
    _, id, packed = arguments(frame, 3)
    node = session.commons.node
    options = _options(packed)
    match options:
        case {"version": int(version)} if version != VERSION:
            raise errors.BadFrame(f"nodes speak version {VERSION} here, not {version}")
        case {"from": str(whose), "by": int(by), "node": str(wanted), "worker": int(worker), "version": int()}:
            pass
        case _:
            raise errors.BadFrame("the options of :peer are from, by, node, worker and version")
    session.commons.admission.check_node(session, _token(options))
    if session.response is not None and session.response.asker != whose:
        raise errors.BadFrame(f"node {session.response.asker} has proved itself here, and not {whose}")
    if not session.is_idle():
        raise errors.BadFrame("a connection that has calls cannot become one between nodes")
    met = {
        "node": node.id,
        "worker": node.slot,
        "life": node.life,
        "waits": session.commons.standing.opening,
        "counts": whose in node.snapshot.by_id,
    }
    session.reply(wire.PEER, id, values.pack(met))
    if (wanted, worker) == (node.id, node.slot):
        flags = (options.get("waits") is True, options.get("replaced") is True)
        sock, unwritten = session.detach()
        place, life = Place(whose, by), str(options.get("life", ""))
        session.commons.links.welcome(sock, unwritten, session.peer, place, life, *flags)


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


def unusual(frame: Frame) -> Callable[[Session, Arguments], None]:
    """Return the method of a frame that does not name it in canonical form. Raises BadFrame or UnknownMethod."""
    if isinstance(frame, BadFrame):
        raise errors.BadFrame(f"this is not a MessagePack array of a call: {frame.reason}")
    method = _canonical_name(frame[0])
    if method is None:
        raise errors.UnknownMethod("there is no such method")
    return METHODS[method]


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
    return frame[3] if names_it else TIMED_OUT


def _canonical_name(method: bytes) -> bytes | None:
    """Return the canonical form of a method that may be encoded at length, None if there is no such method."""
    if not 0 < len(method) <= MAX_ECHOED_METHOD:
        return None
    canonical = values.canonical(method)
    return canonical if canonical in METHODS else None


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
