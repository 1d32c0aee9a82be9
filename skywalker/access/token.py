"""The secret by which a program shows who it is. Nodes know only its hash.

It is random, and long enough that its hash need not be slow: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final

PREFIX: Final = "skw_"
"""What every token begins with, so that one that has got somewhere by mistake is known for what it is."""

MAX_BYTES: Final = 4096
"""Of what somebody has written one to."""

_BYTES: Final = 32
_TOKEN: Final = re.compile(re.escape(PREFIX) + r"[\w-]+")
_WORD: Final = re.compile(rb"[!-~]+")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


def masked(text: str) -> str:
    """Return a text without the tokens in it, wherever somebody has put them by mistake."""
    return _TOKEN.sub(PREFIX + "...", text) if PREFIX in text else text


def new() -> str:
    """Return a token that nobody has."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def parse(data: bytes) -> str:
    """Return the token that a file or a variable holds, with any space around it. Raises ValueError if it is no word.

    No error repeats it.
    """
    word = data.strip()
    if len(data) > MAX_BYTES or not _WORD.fullmatch(word):
        raise ValueError("it is not one word of ASCII")
    return word.decode()


def hash_of(token: str) -> str:
    """Return what a config file holds of a token, which is of no use to who reads it: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash(text: str) -> bool:
    """Whether a text has the form of what hash_of() returns."""
    return _HASH.fullmatch(text) is not None


def matches(hashed: str, known: str) -> bool:
    """Whether two hashes are the same, in a time that does not depend on how much of them is."""
    return hmac.compare_digest(hashed, known)
