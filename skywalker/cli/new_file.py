"""Files that must not be there yet: what they hold cannot be had again if it is overwritten."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError

SECRET: Final = 0o600
"""Only its owner may read it."""

PUBLIC: Final = 0o644


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file whole or not at all. Raises ConfigError, also if it is there."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with open(file, "wb") as out:
            out.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
