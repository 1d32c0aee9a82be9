"""Who this node is: an id and tokens, kept in the state directory across restarts."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from skywalker import own_directory
from skywalker.ring import TOKENS_PER_NODE, random_tokens


class StateError(Exception):
    """The state directory cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A node's id and its tokens, sorted."""

    id: str
    tokens: list[int]

    @staticmethod
    def new(tokens: int = TOKENS_PER_NODE) -> Identity:
        """Return an identity that no other node has, with so many tokens."""
        return Identity(str(uuid.uuid4()), random_tokens(tokens))


class StateDirectory:
    """A directory that one running node holds for itself, from open() until its process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: IO[str] | None = None

    def open(self, tokens: int = TOKENS_PER_NODE) -> Identity:
        """Return the identity kept here; if there is none, a new one is made, with so many tokens, and kept.

        Raises StateError.
        """
        try:
            self._claim()
            return self._identity(tokens)
        except StateError:
            self.close()
            raise

    def _claim(self) -> None:
        try:
            own_directory.make(self._path)
            # Not closed: the lock lasts as long as the process. Workers close their copies.
            self._lock = open(self._path / "lock", "w")  # noqa: SIM115  # held for life, as said
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"the state directory {self._path} belongs to a node that runs: give this one its own with --state-dir"
            ) from error
        except OSError as error:
            raise StateError(f"cannot use the state directory {self._path}: {error.strerror}") from error

    def _identity(self, tokens: int) -> Identity:
        file = self._path / "node.json"
        try:
            return _parse(file.read_text())
        except FileNotFoundError:
            identity = Identity.new(tokens)
            _write(file, json.dumps(asdict(identity)) + "\n")
            return identity
        except (OSError, ValueError, RecursionError) as error:
            raise StateError(f"cannot read {file}: {error}. Remove it to give the node new tokens") from error

    def close(self) -> None:
        """Give up this process's copy of the lock, if it has one."""
        if self._lock is not None:
            self._lock.close()


def _parse(text: str) -> Identity:
    match json.loads(text):
        case {"id": str(id), "tokens": [*tokens]} if tokens and all(
            type(token) is int and -(2**63) <= token < 2**63 for token in tokens
        ):
            return Identity(id, sorted(set(tokens)))
    raise ValueError("it holds no id and tokens")


def _write(file: Path, text: str) -> None:
    # A power cut leaves the old file or the whole new one.
    draft = file.with_suffix(".new")
    try:
        with draft.open("w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        draft.rename(file)
    except OSError as error:
        raise StateError(f"cannot write {file}: {error.strerror}") from error
