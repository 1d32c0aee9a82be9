"""The key pair of a cluster: who has it is let in, and what is said is encrypted. CURVE, as ZeroMQ does it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import zmq
import zmq.auth

from skywalker.errors import ConfigError


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """One pair for all nodes of a cluster, and for who asks them."""

    public: bytes  # in the text form of ZeroMQ, as the next
    secret: bytes = dataclasses.field(repr=False)

    @classmethod
    def generate(cls) -> Keys:
        """Return a pair that nobody else has."""
        public, secret = zmq.curve_keypair()
        return cls(public, secret)

    @classmethod
    def load(cls, path: str | Path) -> Keys:
        """Read what save() has written. Raises ConfigError."""
        try:
            public, secret = zmq.auth.load_certificate(Path(path))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ConfigError(f"the key file {path} cannot be read: {reason}") from error
        try:
            if secret is not None and zmq.curve_public(secret) == public:
                return cls(public, secret)
        except (zmq.ZMQError, ValueError):
            pass  # it is no key at all
        raise ConfigError(f"the key file {path} holds no pair of keys: make one with skywalker silk keygen FILE")

    def save(self, path: str | Path) -> None:
        """Write them to a new file that only its owner may read. Raises ConfigError, also if the file is there."""
        text = (
            f'metadata\ncurve\n    public-key = "{self.public.decode()}"\n    secret-key = "{self.secret.decode()}"\n'
        )
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
        except OSError as error:
            raise ConfigError(f"the key file {path} cannot be written: {error.strerror}") from error

    def guard(self, sock: zmq.Socket[Any], *, is_server: bool) -> None:
        """Have a socket talk only to who has the keys, and encrypt it; of a connection one side is the server.

        A server lets in whoever knows its public key: an authenticator has to look at theirs.
        """
        sock.curve_publickey, sock.curve_secretkey = self.public, self.secret
        if is_server:
            sock.curve_server = True
        else:
            sock.curve_serverkey = self.public


def hint(keys: Keys | None) -> str:
    """Return what else it may be that nobody answers, after a comma: ZeroMQ says nothing to who has other keys."""
    return "or those there have keys" if keys is None else "nobody with these keys at least"


def keys_of(keys: Keys | str | Path | None) -> Keys | None:
    """Return keys that are given as they are, or as the file that they are in. Raises ConfigError."""
    return Keys.load(keys) if isinstance(keys, str | Path) else keys
