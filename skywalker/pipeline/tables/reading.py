"""What a read of topics was asked for, checked once: on the driver, before anything is received."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, cast

from skywalker.clients.settings import Settings
from skywalker.errors import BadTopic, ConfigError
from skywalker.limits import MAX_TIMEOUT_MS
from skywalker.pipeline.mistakes import FAIL
from skywalker.pipeline.options import Options
from skywalker.pipeline.tables.finding import OPTIONS as NODE_OPTIONS
from skywalker.pipeline.tables.finding import Nodes
from skywalker.wire import values

Method = Literal["recv", "take", "subscribe"]
Mode = Literal["PERMISSIVE", "FAILFAST"]

NAME: Final = "skywalker-spark"
"""What a reader calls itself in the node's log."""

DEFAULT_ROWS: Final = 100_000
"""Rows of a batch at most: with fewer, planning them costs more than receiving them."""

MAX_ROWS: Final = 100_000_000
MAX_PARTITIONS: Final = 1024

DEFAULT_WAIT_MS: Final = 500

_METHODS: Final = ("recv", "take", "subscribe")
_MODES: Final = ("PERMISSIVE", "FAILFAST")
_OF_BOTH: Final = (
    *NODE_OPTIONS,
    *("topic", "topics", "method", "group", "rowsPerBatch", "waitMs", "partitions", "mode"),
)
_OF_STREAMS: Final = ("spool", FAIL)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read, and how."""

    nodes: Nodes
    topics: tuple[str, ...]
    method: Method
    group: str
    rows_per_batch: int
    wait_s: float
    partitions: int
    mode: Mode
    spool: Path | None = None
    fails_on_loss: bool = True

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streams: bool) -> Reading:
        """Take the options of a read. Raises ConfigError naming the one that is unknown, missing or not allowed."""
        options = Options.parse(given, (*_OF_BOTH, *_OF_STREAMS))
        if not streams:
            for name in _OF_STREAMS:
                if options.has(name):
                    raise ConfigError(f"option {name!r} is for readStream: a batch read has nothing to come back to")
        method = cast(Method, options.one_of("method", _METHODS, "take"))
        partitions = options.whole("partitions", 1, 1, MAX_PARTITIONS)
        if method != "take" and partitions > 1 and not streams:
            raise options.wrong("partitions", f"1 for {method}, which gives every value to each; method take shares")
        if method != "take" and options.has("group"):
            raise ConfigError(f"option 'group' goes with method take, and the method is {method}")
        return cls(
            nodes=Nodes.parse(options),
            topics=_topics(options),
            method=method,
            group=options.text("group"),
            rows_per_batch=options.whole("rowsPerBatch", DEFAULT_ROWS, 1, MAX_ROWS),
            # In no time at all nothing comes, and Spark would be told so for ever.
            wait_s=options.whole("waitMs", DEFAULT_WAIT_MS, 1, MAX_TIMEOUT_MS) / 1000,
            partitions=partitions,
            mode=cast(Mode, options.one_of("mode", _MODES, "PERMISSIVE")),
            spool=_spool(options),
            fails_on_loss=options.truth(FAIL, True),
        )

    def settings(self) -> Settings:
        """Return how to get to the nodes. Raises ConfigError for a file that is not what it should be."""
        return self.nodes.settings(name=NAME, ack=True)


def _spool(options: Options) -> Path | None:
    if not options.has("spool"):
        return None
    spool = Path(options.text("spool"))
    if not spool.is_absolute():  # so are hdfs://… and file:///…
        raise options.wrong("spool", "an absolute path, no URL, of a directory that all machines with tasks share")
    return spool


def _topics(options: Options) -> tuple[str, ...]:
    if options.has("topic") == options.has("topics"):
        raise ConfigError("give one of the options 'topic', a name, and 'topics', a comma list of names")
    name = "topic" if options.has("topic") else "topics"
    topics = (options.text(name),) if name == "topic" else options.texts(name)
    for each in (*topics, options.text("group")):
        try:
            values.topic_bytes(values.pack(each))
        except BadTopic as error:
            raise ConfigError(f"option {name!r} or 'group': {error}") from error
    return topics
