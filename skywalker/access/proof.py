"""How two nodes show each other that they know the secret of their cluster, which itself is never sent.

    dialler  -> [":challenge", id, {"from": its id, "address": where it is reached, "at": where it has dialled,
                                    "nonce": 32 bytes, "keys": [which secrets it knows]}]
    dialled  -> {"node": its id, "address": where it is reached, "nonce": 32 bytes, "key": which secret, "proof": mac}
    dialler  -> [":proof", id, mac]

Each mac is HMAC-SHA256 (RFC 2104), keyed with the secret, of who has made it ("dialler" or "dialled") and of the id,
the address and the nonce of both. So nothing that was said before, to somebody else, or by the other one, is a proof.
Whoever passes on what two nodes say to each other proves nothing either: the dialler has dialled an address that the
dialled one does not say is its own.

That each nonce is new is the business of whoever chooses it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from skywalker.address import Address
from skywalker.errors import LocalProtocolError, SkywalkerError
from skywalker.wire import values

NONCE: Final = 32
"""Bytes of a nonce."""

MAX_TEXT: Final = 300
"""Characters of an id or an address that is heard: the longest id, or host name with its port."""

MAX_SECRETS: Final = 4
"""Secrets that a node may know: one, and a second while it replaces the first; a few to spare."""

_KEY: Final = b"skywalker: which secret"
_MAC: Final = "skywalker: node"
_KEY_BYTES: Final = 8
_DIALLER: Final = "dialler"
_DIALLED: Final = "dialled"


class NotProven(SkywalkerError):
    """The other end has not shown that it is a node of this cluster; the text says what is missing."""


class Elsewhere(NotProven):
    """The other end is a node of this cluster, and is reached at another `address` than the one that was dialled."""

    def __init__(self, address: Address, at: str) -> None:
        super().__init__(
            f"the node that answers there says that it is reached at {address}: name that address, or have the node "
            f"say by --advertise={at} that it is reached here"
        )
        self.address = address


class Secrets:
    """The secrets of a cluster, in a text with space between them: one, or the new one and the old while both hold."""

    def __init__(self, text: str = "") -> None:
        self.words: Final = tuple(dict.fromkeys(text.split()))
        self.ids: Final = tuple(map(_id_of, self.words))
        """By these both ends say which secrets they know; to whoever does not know them they tell nothing else."""

    def __bool__(self) -> bool:
        return bool(self.words)

    def find(self, said: str | bytes) -> str:
        """Return which of the secrets somebody has said, empty if it is none. How long that takes tells nothing."""
        data = said if isinstance(said, bytes) else _encoded(said)
        return "".join([each for each in self.words if hmac.compare_digest(_encoded(each), data)])

    def shared(self, ids: Any) -> str:
        """Return the first of the secrets that is also among those of the other end, empty if none is."""
        known = ids[:MAX_SECRETS] if isinstance(ids, list) else []
        return next((secret for secret, id in zip(self.words, self.ids, strict=True) if id in known), "")


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """What one of the two says of itself."""

    node: str
    address: str
    nonce: bytes

    @classmethod
    def heard(cls, node: Any, address: Any, nonce: Any) -> Side | None:
        """Return what the other end says of itself, None if it says nothing of the kind."""
        if not (isinstance(node, str) and isinstance(address, str) and isinstance(nonce, bytes)):
            return None
        if len(node) > MAX_TEXT or len(address) > MAX_TEXT or len(nonce) != NONCE:
            return None
        return cls(node, address, nonce)


class Challenge:
    """The dialler's part, of one connection."""

    def __init__(self, secrets: Secrets, node: str, address: Address, at: Address, nonce: bytes) -> None:
        """This is `node`, which others reach at `address`, and it has dialled `at`."""
        self._secrets = secrets
        self._at = named(at)
        self._ours = Side(node, named(address), nonce)

    @property
    def question(self) -> Mapping[str, Any]:
        """What is asked."""
        ours = self._ours
        return {
            "from": ours.node,
            "address": ours.address,
            "at": self._at,
            "nonce": ours.nonce,
            "keys": [*self._secrets.ids],
        }

    def judge(self, answer: Any) -> tuple[str, bytes]:
        """Return the id of the node that has answered, and our proof for it. Raises NotProven."""
        told = answer if isinstance(answer, dict) else {}
        theirs = Side.heard(told.get("node"), told.get("address"), told.get("nonce"))
        secret = self._secrets.shared([told.get("key")])
        proof = told.get("proof")
        if theirs is None or not secret or not isinstance(proof, bytes):
            raise NotProven("its answer to a challenge makes no sense")
        if not hmac.compare_digest(proof, _mac(secret, _DIALLED, self._ours, theirs)):
            raise NotProven("its proof is wrong: it does not know the secret of this cluster")
        if theirs.address != self._at:
            try:
                elsewhere = Address.parse(theirs.address)
            except LocalProtocolError as error:
                raise NotProven(f"the node that answers there says that it is reached elsewhere: {error}") from error
            raise Elsewhere(elsewhere, self._at)
        return theirs.node, _mac(secret, _DIALLER, self._ours, theirs)


class Response:
    """The part of the one that was dialled, of one connection."""

    def __init__(
        self, secrets: Secrets, node: str, address: Address, reached: Address, question: Mapping[Any, Any], nonce: bytes
    ) -> None:
        """This is `node`, which says of itself that it is at `address`; this connection has come to `reached`.

        Raises NotProven if the other end knows none of the secrets, ValueError if what it asks makes no sense.
        """
        theirs = Side.heard(question.get("from"), question.get("address"), question.get("nonce"))
        if theirs is None:
            raise ValueError("the options of :challenge are from, address, at, nonce and keys")
        self.secret: Final = secrets.shared(question.get("keys"))
        """The one that both know."""
        if not self.secret:
            raise NotProven(f"node {theirs.node:.64} knows no secret of this one's: give both the same cluster.secret")
        # Of several addresses that lead here it is the one that was dialled, so that both mean the same.
        here = named(reached) if question.get("at") == named(reached) else named(address)
        self._theirs = theirs
        self._ours = Side(node, here, nonce)
        self.asker: Final = theirs.node
        """The id of the node that has asked."""

    @property
    def answer(self) -> Mapping[str, Any]:
        """What is answered."""
        ours = self._ours
        return {
            "node": ours.node,
            "address": ours.address,
            "nonce": ours.nonce,
            "key": _id_of(self.secret),
            "proof": _mac(self.secret, _DIALLED, self._theirs, ours),
        }

    def accepts(self, proof: bytes) -> bool:
        """Whether this is the dialler's proof. How long that takes says nothing about the right one."""
        return hmac.compare_digest(proof, _mac(self.secret, _DIALLER, self._theirs, self._ours))


def named(address: Address) -> str:
    """Return an address as both ends write it, whatever the form in which a socket has it."""
    host = address.host.partition("%")[0]
    try:
        numeric = ipaddress.ip_address(host)
    except ValueError:
        return str(address)
    mapped = numeric.ipv4_mapped if isinstance(numeric, ipaddress.IPv6Address) else None
    return str(Address(str(mapped or numeric), address.port))


def _id_of(secret: str) -> bytes:
    return _digest(secret, _KEY)[:_KEY_BYTES]


def _mac(secret: str, by: str, dialler: Side, dialled: Side) -> bytes:
    return _digest(secret, values.pack([_MAC, by, *dataclasses.astuple(dialler), *dataclasses.astuple(dialled)]))


def _digest(secret: str, message: bytes) -> bytes:
    return hmac.digest(_encoded(secret), message, hashlib.sha256)


def _encoded(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogatepass")
