"""What a read of a journal was asked for, checked once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from skywalker.errors import ConfigError
from skywalker.journal.header import CALLS, NAMES
from skywalker.pipeline.losses import FAIL, Losses
from skywalker.pipeline.options import Options

PATH: Final = "path"
KIND: Final = "kind"
PARTITION_RECORDS: Final = "recordsPerPartition"
TRIGGER_RECORDS: Final = "maxRecordsPerTrigger"

_OPTIONS: Final = (PATH, KIND, PARTITION_RECORDS, TRIGGER_RECORDS, FAIL)

DEFAULT_PARTITION_RECORDS: Final = 500_000
"""A task costs as much as some 20,000 records; so many take it about half a second."""

_MOST: Final = 10**12


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read, and how."""

    directory: Path
    kind: str
    partition_records: int
    trigger_records: int | None
    losses: Losses

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Take the options that Spark hands over. Raises ConfigError."""
        options = Options.parse(given, _OPTIONS)
        return cls(
            _directory(options.text(PATH)),
            options.one_of(KIND, (CALLS, NAMES), CALLS),
            options.whole(PARTITION_RECORDS, DEFAULT_PARTITION_RECORDS, 1, _MOST),
            options.whole(TRIGGER_RECORDS, 1, 1, _MOST) if options.has(TRIGGER_RECORDS) else None,
            Losses(options.truth(FAIL, True)),
        )


def _directory(text: str) -> Path:
    """Return the directory that the option `path` names. Raises ConfigError."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        text = rest if not rest.startswith("//") else rest[2:]
    elif colon and "/" not in scheme and rest.startswith("//"):
        raise ConfigError(
            f"option {PATH!r} is {text!r}; a journal is read from a directory of the machine, or one mounted"
        )
    if not text:
        raise ConfigError(
            f"option {PATH!r} is missing: .load(DIR), with the directory of `skywalker serve --journal DIR`"
        )
    return Path(text).absolute()
