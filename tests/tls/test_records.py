"""Two ends of a connection in memory: whatever way the ciphertext comes, the plaintext is the same, and all of it."""

from __future__ import annotations

import contextlib
import itertools
import ssl

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.records import Records
from tests.authority import Authority

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def ends(contexts: Contexts, name: str = "127.0.0.1") -> tuple[Records, Records]:
    return Records(contexts[0], server_side=True), Records(contexts[1], server_hostname=name)


def shaken(contexts: Contexts) -> tuple[Records, Records]:
    """Return both ends, of which nothing is on its way."""
    node, client = ends(contexts)
    for _ in range(4):
        for one, other in ((client, node), (node, client)):
            one.shake_hands()
            if data := one.output():
                other.feed(data)
    assert node.shake_hands()
    assert client.shake_hands()
    assert node.read() == b""
    assert client.read() == b""
    return node, client


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in itertools.pairwise(at)]


def test_each_end_knows_the_other(contexts: Contexts) -> None:
    node, client = shaken(contexts)
    assert node.names() == ("client.example",)
    assert client.names() == ("127.0.0.1",)  # the common name: an address is no DNS name


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


@shared
@given(st.lists(st.binary(max_size=40_000), max_size=5), st.lists(st.integers(0, 200_000), max_size=20))
def test_what_is_written_is_read_whole_at_once_as_far_as_it_has_come(
    contexts: Contexts, written: list[bytes], cuts: list[int]
) -> None:
    node, client = shaken(contexts)
    for data in written:
        client.write(data)
    cipher = client.output()
    read = b""
    for piece in pieces(cipher, cuts):
        node.feed(piece)
        read += node.read()
        assert node.read() == b"", "something was left where no selector sees it"
    assert read == b"".join(written)
    assert not node.ended


@shared
@given(st.integers(0, 100_000))
def test_an_end_in_the_middle_is_an_end_and_gives_nothing_that_was_not_written(contexts: Contexts, cut: int) -> None:
    node, client = shaken(contexts)
    text = b"".join(number.to_bytes(4, "big") for number in range(10_000))
    client.write(text)
    cipher = client.output()
    node.feed(cipher[: cut % len(cipher)])
    node.feed(b"")
    assert text.startswith(node.read())
    assert node.ended


def test_a_bit_that_was_changed_is_noticed(contexts: Contexts) -> None:
    node, client = shaken(contexts)
    client.write(b"a value")
    cipher = bytearray(client.output())
    cipher[-1] ^= 1
    node.feed(bytes(cipher))
    with pytest.raises(ssl.SSLError):
        node.read()
    assert node.output(), "the other end is to be told"


def test_a_last_word_comes_after_all_that_was_written(contexts: Contexts) -> None:
    node, client = shaken(contexts)
    client.write(b"the last")
    client.close()
    node.feed(client.output())
    assert (node.read(), node.ended) == (b"the last", True)
    node.write(b"and the answer")  # it has ended its own half only
    client.feed(node.output())
    assert client.read() == b"and the answer"


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


@shared
@given(st.binary(min_size=1, max_size=300))
def test_rubbish_before_the_handshake_is_an_error_and_nothing_else(contexts: Contexts, data: bytes) -> None:
    node, _ = ends(contexts)
    node.feed(data)
    with contextlib.suppress(ssl.SSLError):
        assert not node.shake_hands()
    assert not node.established
    assert len(node.output()) < 100


def test_one_end_writes_nothing_unasked_after_the_handshake(contexts: Contexts) -> None:
    # Tickets would wake a reader that then finds nothing.
    node, _ = shaken(contexts)
    assert node.output() == b""


@pytest.mark.parametrize(
    ("name", "reason"), [("127.0.0.2", "IP address mismatch"), ("elsewhere.example", "Hostname mismatch")]
)
def test_a_client_takes_no_node_of_another_name(contexts: Contexts, name: str, reason: str) -> None:
    node, client = ends(contexts, name)
    client.shake_hands()
    node.feed(client.output())
    node.shake_hands()
    client.feed(node.output())
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        client.shake_hands()


def test_a_node_takes_no_certificate_of_an_authority_it_does_not_trust(
    contexts: Contexts, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    node, client = ends((contexts[0], client_context(authority.ca, *stranger.sign("client.example"))))
    client.shake_hands()
    node.feed(client.output())
    node.shake_hands()
    client.feed(node.output())
    client.shake_hands()
    node.feed(client.output())
    with pytest.raises(ssl.SSLError):
        node.shake_hands()


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
