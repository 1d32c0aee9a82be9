"""Whom a node takes for a node of its cluster, and how it shows that it is one itself.

By certificate, where a principal with `node = true` is known by one; else by the secret of the cluster: see proof.py.
Both ends have to, the one that dials and the one that was dialled, before either counts on the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from skywalker.access.access import Access
from skywalker.access.proof import Challenge, NotProven, Secrets
from skywalker.address import Address
from skywalker.errors import RequestError, Unauthorized, UnknownMethod
from skywalker.wire import junction as wire
from skywalker.wire import values

ADVICE: Final = (
    "nodes of one cluster need the same cluster.secret, or certificates with a name of a principal with node = true"
)

OLD: Final = "if it is of the version before, upgrade it, or allow secret_in_clear until that is done"

MAX_REASON: Final = 200
"""Characters of why somebody is no node, which may be the other end's words."""


class Trust:
    """Of one node. With neither `access` nor `secret`, everybody is accepted as a node.

    `in_clear` also accepts nodes of the version before, which receive the secret itself and prove nothing.
    """

    def __init__(self, access: Access | None = None, secret: str = "", *, in_clear: bool = False) -> None:
        self.secrets: Final = Secrets(secret)
        self.in_clear: Final = in_clear
        self.is_demanded: Final = access is not None or bool(self.secrets)
        """Whether who is no node is told from who is one."""
        self._access = access

    def knows(self, names: Iterable[str]) -> bool:
        """Whether a certificate with these names, which was verified, is that of a node."""
        principal = None if self._access is None else self._access.by_certificate(names)
        return principal is not None and principal.node


class Introduction:
    """The beginning of a connection, for the node that has made it, until both ends have proved themselves.

    Send what begin() returns. If it returned a challenge, pass the answer to heard(), and send what that returns
    before anything else.
    """

    def __init__(
        self,
        trust: Trust,
        node: str,
        address: Address,
        at: Address,
        names: Iterable[str],
        nonce: bytes,
        wanted: str = "",
    ) -> None:
        """This is `node`, reached at `address`; it has dialled `at`, where a certificate with these names was shown.

        The `nonce` is a new one, of NONCE bytes. If it is known which node should answer, that is `wanted`.
        """
        self._trust = trust
        self._is_known = trust.knows(names)
        self._challenge = Challenge(trust.secrets, node, address, at, nonce)
        self._wanted = wanted
        self.node = ""
        """The id of the node that the other end has proved to be, empty if there is no such proof."""
        self.token = ""
        """The secret itself, if it is to be said in the :peer that follows, since the other end knows no better."""

    def begin(self, id: bytes) -> bytes:
        """Return the frame of a challenge, empty if nothing is to be asked. Raises NotProven."""
        if self._trust.secrets:
            return wire.frame(wire.CHALLENGE, id, values.pack(self._challenge.question))
        if self._trust.is_demanded and not self._is_known:
            raise NotProven(f"it shows no certificate of a node: {ADVICE}")
        return b""

    def heard(self, id: bytes, answer: Any) -> bytes:
        """Return the frame of our proof, empty if none is wanted. Raises NotProven."""
        refused = wire.refusal(answer)
        if refused is None:
            self.node, proof = self._challenge.judge(answer)
            if self._wanted not in ("", self.node):
                raise NotProven(f"node {self.node} answers there")
            return wire.frame(wire.PROOF, id, values.pack(proof))
        if not self._is_known:
            self._settle_for_less(refused)
        return b""

    def _settle_for_less(self, refused: RequestError) -> None:
        """Go on with one that proves nothing, if that may be."""
        # One of the version before knows no challenge; nor does it listen to one before it knows who asks. One of this
        # version says what is missing.
        is_old = isinstance(refused, UnknownMethod | Unauthorized) and not refused.details
        if not (is_old and self._trust.in_clear):
            what_to_do = f": {OLD}" if is_old else ""
            raise NotProven(f"it proves nothing, and says: {str(refused)[:MAX_REASON]}{what_to_do}")
        self.token = self._trust.secrets.words[0]


def farewell(id: bytes, reason: NotProven) -> bytes:
    """Return the frame by which the other end hears, before the connection ends, why it is taken for no node."""
    return wire.frame(wire.PROOF, id, values.pack(str(reason)[:MAX_REASON]))
