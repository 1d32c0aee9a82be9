"""Keys: who has them is let in, and nobody else reads or says a thing."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from skywalker import silk
from skywalker.errors import ConfigError, Unreachable
from skywalker.silk import blocking
from tests.clients.proxy import Proxy
from tests.helpers import time_factor
from tests.silk.driving import Diary, cluster, keepalive, met, run

REAL = True
"""What only real sockets, threads or clocks show."""

SECRET = "the text that nobody else may read"


@pytest.fixture(scope="module")
def keys() -> silk.Keys:
    return silk.Keys.generate()


@contextlib.contextmanager
def plain(kind: int, endpoint: str, theirs: silk.Keys | None, server: bytes) -> Iterator[zmq.Socket[bytes]]:
    """Connect a plain socket with these keys, or with none."""
    with zmq.Context() as context, context.socket(kind) as sock:
        sock.set(zmq.LINGER, 0)
        if theirs is not None:
            sock.curve_publickey, sock.curve_secretkey, sock.curve_serverkey = theirs.public, theirs.secret, server
        if kind == zmq.SUB:
            sock.subscribe("")
        sock.connect(endpoint)
        yield sock


@pytest.mark.parametrize("theirs", [None, silk.Keys.generate()], ids=["no keys", "other keys"])
def test_who_has_not_the_keys_neither_gets_in_nor_learns_a_thing(keys: silk.Keys, theirs: silk.Keys | None) -> None:
    async def main() -> None:
        async with cluster(2, keys=keys) as (one, other), silk.Node(keys=theirs, keepalive=keepalive()) as stranger:
            diary = Diary(one)
            hint = ", nobody with these keys at least" if theirs else ", or those there have keys"
            with pytest.raises(Unreachable, match=f"no node answered within 0.3 s{hint}$"):
                await stranger.join(one.info.router, timeout=0.3)
            with pytest.raises(Unreachable):
                await asyncio.to_thread(silk.ask, one.info.router, keys=theirs, timeout=0.3)
            # Nor can one of the cluster be made to join the stranger.
            with pytest.raises(Unreachable):
                await one.join(stranger.info.router, timeout=0.3)
            assert (stranger.members, diary.entries, one.dropped) == ({}, [], 0)
            await met(one, other)
            diary.events.close()

    run(main())


@pytest.mark.parametrize("theirs", [None, silk.Keys.generate()], ids=["no keys", "other keys"])
def test_what_is_broadcast_is_for_who_has_the_keys(keys: silk.Keys, theirs: silk.Keys | None) -> None:
    with (
        blocking.Node(keys=keys, keepalive=keepalive()) as node,
        plain(zmq.SUB, node.info.pub, theirs, keys.public) as outsider,
        plain(zmq.SUB, node.info.pub, keys, keys.public) as insider,
    ):
        assert insider.poll(round(5000 * time_factor()))
        assert not outsider.poll(round(3 * keepalive() * 1000))


@pytest.mark.parametrize("theirs", [None, silk.Keys.generate()], ids=["no keys", "other keys"])
def test_what_others_send_without_the_keys_is_not_read(keys: silk.Keys, theirs: silk.Keys | None) -> None:
    question = b'{"src": "s", "id": "i", "type": "_members"}'
    with blocking.Node(keys=keys) as node:
        with plain(zmq.DEALER, node.info.router, theirs, keys.public) as dealer:
            for _ in range(10):
                dealer.send_multipart([question])
            dealer.send_multipart([b"nonsense, that would be counted"])
            assert not dealer.poll(300)
        assert node.dropped == 0
        with plain(zmq.DEALER, node.info.router, keys, keys.public) as dealer:
            dealer.send(question)
            assert dealer.poll(round(5000 * time_factor()))


@pytest.mark.parametrize("has_keys", [True, False])
def test_nothing_is_said_in_plain_text(keys: silk.Keys, has_keys: bool) -> None:
    """Without keys all can be read: that shows that the wire is tapped where it matters."""

    async def main() -> None:
        pair = keys if has_keys else None
        with contextlib.ExitStack() as taps:
            # Others reach this one by wire taps only, because that is where it says that it is.
            async with silk.Node(name=SECRET, keys=pair) as tapped, silk.Node(name=SECRET, keys=pair) as other:
                router, pub = (
                    taps.enter_context(Proxy("127.0.0.1", int(endpoint.rpartition(":")[2])))
                    for endpoint in (tapped.info.router, tapped.info.pub)
                )
                await other.join(router.address)
                with plain(zmq.SUB, f"tcp://{pub.address}", pair, keys.public) as sub:
                    async with asyncio.timeout(5 * time_factor()):
                        while not await asyncio.to_thread(sub.poll, 20):
                            await tapped.broadcast("note", SECRET)
            assert len(router.heard) > 300
            assert len(pub.heard) > 300
            for heard in (router.heard, pub.heard):
                assert (SECRET.encode() in heard) is not has_keys
                assert (b"_join" in heard or b"note" in heard) is not has_keys

    run(main())


def test_keys_come_from_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.key"
    keys = silk.Keys.generate()
    keys.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert silk.Keys.load(path) == silk.Keys.load(str(path)) == keys
    assert keys.secret.decode() not in repr(keys)

    async def main() -> None:
        async with cluster(2, keys=path) as (one, _):
            assert len(await asyncio.to_thread(silk.ask, one.info.router, keys=str(path))) == 2

    run(main())


PUBLIC = b'    public-key = "%s"\n' % silk.Keys.generate().public
BAD_FILES = {
    "empty": b"",
    "binary": os.urandom(100),
    "another format": b"-----BEGIN PRIVATE KEY-----\n",
    "the public key alone": b"metadata\ncurve\n" + PUBLIC,
    "a secret key that is none": b"metadata\ncurve\n" + PUBLIC + b'    secret-key = "short"\n',
    "a secret key of another": b"metadata\ncurve\n" + PUBLIC + b'    secret-key = "%s"\n' % silk.Keys.generate().secret,
    "keys that are no text": b'metadata\ncurve\n    public-key = "\xff"\n    secret-key = "\xff"\n',
}


@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in BAD_FILES.items()])
def test_a_file_that_holds_no_keys_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cluster.key"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"the key file {path} "):
        silk.Keys.load(path)
    with pytest.raises(ConfigError, match=f"the key file {path} "):
        silk.Node(keys=path)
