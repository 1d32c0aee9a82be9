"""Values in the words of pub/sub, each made once however many connections get it."""

from __future__ import annotations

from skywalker.wire.pubsub import FORM, UNTYPED, payload_of, publish, publish_typed
from workers.calls.call import NodeCall


class Wording:
    """The words for the value that was given last: all who get one get it at once."""

    __slots__ = ("_plain", "_send", "_typed")

    def __init__(self) -> None:
        self._send: NodeCall | None = None
        self._plain: bytes | None = None
        self._typed: bytes | None = None

    def begin(self, send: NodeCall, plain: bytes | None, typed: bytes | None) -> None:
        """Take over what came in these very words."""
        self._send, self._plain, self._typed = send, plain, typed

    def plain(self, send: NodeCall, topic: bytes) -> bytes:
        """Return it as a publish to `topic`, which is what pub/sub calls that of the send."""
        if send is not self._send:
            self.begin(send, None, None)
        if self._plain is None:
            self._plain = publish(topic, payload_of(_value(send)))
        return self._plain

    def typed(self, send: NodeCall, topic: bytes) -> bytes:
        """Return it as a publish-typed."""
        if send is not self._send:
            self.begin(send, None, None)
        if self._typed is None:
            form = send.form
            payload = form[FORM:] if len(form) > FORM else payload_of(_value(send))
            self._typed = publish_typed(topic, form[:FORM] or UNTYPED, payload)
        return self._typed


def _value(send: NodeCall) -> bytes:
    assert send.value is not None, "it is a send"
    return send.value
