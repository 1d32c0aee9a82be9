"""Two ends of a connection in memory: whatever way the ciphertext comes, the plaintext is the same, and all of it."""

from __future__ import annotations

import itertools
import ssl
from pathlib import Path

import psutil
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.records import MAX_SHAKING, MAX_SILENT, Records
from tests.authority import Authority

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


def ends(contexts: Contexts, name: str = "127.0.0.1") -> tuple[Records, Records]:
    return Records(contexts[0], server_side=True), Records(contexts[1], server_hostname=name)


def shake(node: Records, client: Records) -> None:
    """Have both shake hands, as far as they do."""
    for _ in range(4):
        for one, other in ((client, node), (node, client)):
            one.shake_hands()
            if data := one.output():
                other.feed(data)


def shaken(contexts: Contexts) -> tuple[Records, Records]:
    """Return both ends, of which nothing is on its way."""
    node, client = ends(contexts)
    shake(node, client)
    assert node.shake_hands()
    assert client.shake_hands()
    assert node.read() == b""
    assert client.read() == b""
    return node, client


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in itertools.pairwise(at)]


def test_a_handshake_comes_about_whatever_way_it_is_cut(contexts: Contexts) -> None:
    node, client = ends(contexts)
    client.shake_hands()
    way = [(client, node), (node, client)] * 4
    for one, other in way:
        for byte in one.output():
            other.feed(bytes((byte,)))
            other.shake_hands()
    assert node.established
    assert client.established


def test_much_that_comes_at_once_leaves_no_more_memory_behind_than_a_record_does(contexts: Contexts) -> None:
    pairs = [shaken(contexts) for _ in range(100)]

    def hear(pieces: int) -> int:
        for node, client in pairs:
            for _ in range(4 // pieces):
                said = []
                for _ in range(pieces):
                    client.write(bytes(1 << 14))
                    said.append(client.output())
                node.feed(b"".join(said))
                assert node.read() == bytes(pieces << 14)
        return psutil.Process().memory_info().rss

    before = hear(1)
    assert hear(4) - before < len(pairs) * 20_000


def test_one_end_writes_nothing_unasked_after_the_handshake(contexts: Contexts) -> None:
    # Tickets would wake a reader that then finds nothing.
    node, _ = shaken(contexts)
    assert node.output() == b""


def test_a_node_takes_no_certificate_of_an_authority_it_does_not_trust(
    contexts: Contexts, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    node, client = ends((contexts[0], client_context(authority.ca, *stranger.sign("client.example"))))
    with pytest.raises(ssl.SSLError):
        shake(node, client)


def test_a_node_wants_version_1_3_unless_it_is_told_otherwise(authority: Authority) -> None:
    old = client_context(authority.ca)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    cert, key = authority.sign("127.0.0.1", file="versions")
    for minimum, is_taken in (("1.3", False), ("1.2", True)):
        node, client = ends((server_context(cert, key, minimum=minimum), old))
        client.shake_hands()
        node.feed(client.output())
        if is_taken:
            assert not node.shake_hands()
            assert node.output()
        else:
            with pytest.raises(ssl.SSLError):
                node.shake_hands()


@pytest.mark.parametrize("group", ["secp384r1", "secp521r1", "X25519", "ffdhe8192"])
def test_a_node_does_no_costly_exchange_of_keys(authority: Authority, group: str) -> None:
    context = client_context(authority.ca)
    context.set_ecdh_curve(group)
    node, client = ends((server_context(*authority.sign("127.0.0.1")), context))
    with pytest.raises(ssl.SSLError):
        shake(node, client)


def test_first_words_that_are_too_long_are_an_error_before_they_are_whole(contexts: Contexts) -> None:
    node, _ = ends(contexts)
    part = b"\x16\x03\x01\x40\x00"
    words = part + b"\x01\x01\xff\xf0" + bytes(16_380) + (part + bytes(16_384)) * 6
    pieces = iter(words[at : at + 1000] for at in range(0, len(words), 1000))
    for piece in itertools.islice(pieces, MAX_SHAKING // 1000):
        node.feed(piece)
        assert not node.shake_hands()
    node.feed(next(pieces) + next(pieces))
    with pytest.raises(ssl.SSLError, match="too much before hands are shaken"):
        node.shake_hands()


class Keys:
    """Those with which a client writes, so that a test can say what no client of Python does (RFC 8446, section 7)."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._use()

    def _use(self) -> None:
        self._key, self._iv = self._derived(b"key", 32), self._derived(b"iv", 12)
        self._count = 0

    def _derived(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = size.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
        return HKDFExpand(hashes.SHA384(), size, info).derive(self._secret)

    def record(self, content: bytes, kind: int) -> bytes:
        inner = content + bytes((kind,))
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        nonce = (int.from_bytes(self._iv, "big") ^ self._count).to_bytes(12, "big")
        self._count += 1
        return header + AESGCM(self._key).encrypt(nonce, inner, header)

    def update(self) -> bytes:
        """Return a KeyUpdate that asks for another."""
        record = self.record(b"\x18\0\0\1\1", 22)
        self._secret = self._derived(b"traffic upd", 48)
        self._use()
        return record


def writing_by_hand(authority: Authority, directory: Path) -> tuple[Records, Keys]:
    """Return a node that has shaken hands, and the keys of the client with which it has."""
    context = client_context(authority.ca)
    context.keylog_filename = str(directory / "keys")
    node, client = ends((server_context(*authority.sign("127.0.0.1")), context))
    shake(node, client)
    assert node.shake_hands()
    [secret] = (
        line.split()[2]
        for line in (directory / "keys").read_text().splitlines()
        if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")
    )
    return node, Keys(bytes.fromhex(secret))


@pytest.mark.parametrize("at_once", [1, 8, MAX_SILENT])
def test_whoever_changes_keys_again_and_again_is_no_client(authority: Authority, tmp_path: Path, at_once: int) -> None:
    node, keys = writing_by_hand(authority, tmp_path)
    for _ in range(MAX_SILENT // at_once):
        node.feed(b"".join(keys.update() for _ in range(at_once)))
        assert node.read() == b""
        node.output()
    node.feed(b"".join(keys.update() for _ in range(100)))
    with pytest.raises(ssl.SSLError, match="says nothing, in many records"):
        node.read()


def test_many_small_records_and_now_and_then_another_key_are_heard(authority: Authority, tmp_path: Path) -> None:
    node, keys = writing_by_hand(authority, tmp_path)
    for _ in range(100):
        node.feed(b"".join(keys.record(b"x", 23) for _ in range(1000)) + keys.update())
        assert node.read() == b"x" * 1000
        node.output()


def test_a_certificate_that_python_cannot_read_is_an_error_of_tls(authority: Authority) -> None:
    node, client = ends((server_context(*authority.sign("127.0.0.1"), authority.ca), client_context(authority.ca)))
    node._tls = Unreadable(node._tls)
    with pytest.raises(ssl.SSLError, match="its certificate cannot be read"):
        shake(node, client)


class Unreadable:
    """What Python does with a name in a certificate that is no text."""

    def __init__(self, tls: ssl.SSLObject) -> None:
        self.do_handshake = tls.do_handshake

    def getpeercert(self) -> None:
        b"\xff".decode()
