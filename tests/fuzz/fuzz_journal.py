"""Files of a journal, in whatever state a disk has left them.

Any bytes are a file of calls, one of names, nothing yet, or a JournalError that names the file. All whole records are
read, as they stand there, whatever their numbers; what is counted of them adds up; and put in order none is lost.

The first byte of an input says what the file is called, the second what is asked of it. So that chance gets past the
header, it may be put before the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path

import numpy as np

from skywalker.errors import JournalError
from skywalker.journal import reading
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES, Header
from skywalker.journal.reading import RECORD, Selection, merged
from skywalker.journal.record import RECORD_BYTES
from skywalker.journal.statistics import Statistics
from skywalker.journal.topic_text import topic_text
from tests.fuzz.twins import outcome

FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
NAMED = ("red-w0-0000000000000001.calls", "red-w0-0000000000000001.calls.open", "red-w0-0000000000000001.names")
HEADERS = (b"", *(Header(kind, "node", "red", "red", 0, "r1", 10**18, 10**18).pack() for kind in (CALLS, NAMES)))


def check_input(data: bytes) -> object:
    """Hold the invariant for one file."""
    how, asked, content = (data + b"\0\0")[0], (data + b"\0\0")[1], data[2:]
    path = Path(FOLDER.name) / NAMED[how % len(NAMED)]
    content = HEADERS[how // len(NAMED) % len(HEADERS)] + content
    path.write_bytes(content)
    try:
        return check_file(path, content, asked)
    finally:
        path.unlink()


def check_file(path: Path, content: bytes, asked: int) -> object:
    """Return what is read of a file."""
    header = outcome(lambda: Header.parse(content[:HEADER_BYTES]), JournalError)
    if isinstance(header, Header):
        # What another program has written may be too long to write again.
        with contextlib.suppress(AssertionError, OverflowError):
            packed = dataclasses.replace(header).pack()
            assert len(packed) != HEADER_BYTES or Header.parse(packed).kind == header.kind
    journal = reading.look([Path(FOLDER.name)])
    assert len(journal.segments) + len(journal.names) + len(journal.problems) <= 1
    assert all(str(path) in str(problem) for problem in journal.problems)
    for segment in journal.segments:
        assert segment.header == header
        body = content[HEADER_BYTES:]
        assert (segment.records, segment.torn) == divmod(len(body), RECORD_BYTES)
        records = segment.read()
        assert records.tobytes() == body[: len(body) - segment.torn]
        if asked % 8:  # figures of many kinds take long
            check_order(journal, records, asked)
            return len(records)
        statistics = Statistics()
        statistics.begin(segment.header)
        statistics.add(records, segment.header)
        summary = statistics.summary()
        assert summary.records == len(records)
        calls = len(records) * segment.header.sample
        ends = sum(waits.calls for by_outcome in summary.waits.values() for waits in by_outcome.values())
        by_kind = [sum(each.values()) for each in (summary.routes, summary.doors, summary.workers)]
        assert {summary.calls, ends, *by_kind} == {calls}
        assert summary.topics == len({*records["token"].tolist()})
        return str(summary)
    for names in journal.names:
        _, entries = reading.names_in(names)
        return [(token, topic_text(topic)) for token, topic in entries]
    return [str(problem).replace(FOLDER.name, "") for problem in journal.problems]


def check_order(journal: reading.Journal, records: reading.Records, asked: int) -> None:
    """See that all records come in order, and of a selection those that belong to it."""
    gone: list[object] = []
    runs = [*merged(journal.segments, {}, gone.append)]
    times = np.concatenate([run.times for run in runs]) if runs else np.empty(0, np.int64)
    assert not gone
    assert len(times) == len(records)
    assert all((run.times[1:] >= run.times[:-1]).all() for run in runs)
    if len(records):
        token = int(records["token"][asked % len(records)])
        found = Selection(token=token).of(np.asarray(records, RECORD), journal.segments[0].header)
        assert len(found) == int((records["token"] == token).sum()) > 0
