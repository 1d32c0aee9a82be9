"""Topics from files: what a line means, and which line is bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from skywalker.cli.forms import Json
from skywalker.errors import ConfigError
from skywalker.pipeline.planner import topics
from skywalker.pipeline.planner.skew import Zipf
from skywalker.pipeline.planner.topics import Batch, Numbered, source
from skywalker.ring import token_of
from skywalker.units import count, counts
from skywalker.wire import values

LINES = [
    *("jobs", "user/17", "é€😀", "with space", "0", "42", "-1", "-0", "007", "-", "99999999999999999", "1.5", "1e3"),
    *("-9223372036854775808", "18446744073709551615", '"42"', '""', "[1, 2]", '{"a": null}', " 42", "true", "trueish"),
    *("null", "nullable", "NaN", "Infinity", "-Infinity", "1-2", "4 2", "tab\\tless", "x" * 4093, '{"$bin": "AAE="}'),
    '"' + "\\u0061" * 4_000 + '"',
]  # fmt: skip


def token(line: str) -> int:
    """Return the token of what `skywalker send` makes of an argument."""
    return token_of(values.canonical(values.pack(Json().argument(line.encode()))))


def read(path: Path | str, skew: Zipf | None = None) -> Batch:
    """Return all that a source has, as one batch."""
    batches = [piece.make() for piece in source(str(path), skew).pieces()]
    calls = [batch.calls for batch in batches if batch.calls is not None]
    assert len(calls) in (0, len(batches))
    return Batch(np.concatenate([batch.tokens for batch in batches]), np.concatenate(calls) if calls else None)


def written(path: Path, data: bytes) -> Path:
    file = path / "topics.txt"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("block", [30_000, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "end"])
def test_a_line_is_the_topic_that_it_is_on_a_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, end: str, last: str
) -> None:
    monkeypatch.setattr(topics, "BLOCK_BYTES", block)
    file = written(tmp_path, end.join([*LINES, *LINES, last * bool(last)]).encode())
    batch = read(file)
    assert batch.tokens.tolist() == [token(line) for line in [*LINES, *LINES, *[last] * bool(last)]]
    assert batch.calls is None
    (made,) = [source(str(file), None)]
    assert sum(piece.size for piece in made.pieces()) == made.size == file.stat().st_size


def test_a_number_after_a_tab_is_the_calls_and_empty_lines_are_nothing(tmp_path: Path) -> None:
    batch = read(written(tmp_path, b'jobs\t5\n\n42\t0\r\na\tb\t7\n"42"\t123456789012\n'))
    assert batch.tokens.tolist() == [token("jobs"), token("42"), token("a\tb"), token('"42"')]
    assert batch.calls is not None
    assert batch.calls.tolist() == [5, 0, 7, 123456789012]


@pytest.mark.parametrize("block", [8, 1 << 20])
def test_without_calls_the_skew_goes_down_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(topics, "BLOCK_BYTES", block)
    batch = read(written(tmp_path, b"a\nb\n\nd\ne\nf"), Zipf(2))
    assert batch.calls is not None
    assert batch.calls.tolist() == pytest.approx([1 / rank**2 for rank in (1, 2, 4, 5, 6)])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a\nb\n\xff\n", "line 3: it is not UTF-8"),
        (b"a\t1\nb\n", "line 2: no tab and a number of calls follow the topic"),
        (b"a\t1\n\nb\tx\n", "line 3: no tab and a number"),
        (b"a\t1\nb\t-1\n", "line 2: no tab and a number"),
        (b"a\t1\nb\t" + b"9" * 400, "line 2: no tab and a number"),
        (b"a\n\n{x\n", r"line 3: it looks like JSON but is none \(.*\)$"),
        (b'a\n{"$bin": 1}\n', "line 2: .* is not of the form"),
        (b"a\n" + b"x" * 4094, "line 2: topic of 4097 bytes, limit is 4096"),
        (b'a\n["' + b"x" * 4093 + b'"]', "line 2: topic of 4097 bytes, limit is 4096"),
        (b"a\n" + b"y" * 3_000_000, "line 2: it is longer than 1000000 bytes"),
        (b"a\n99999999999999999999\n", "line 2: int cannot be sent as MessagePack"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, problem: str) -> None:
    monkeypatch.setattr(topics, "BLOCK_BYTES", 1_000_000)
    with pytest.raises(ConfigError, match=f"topics.txt, {problem}"):
        read(written(tmp_path, data))


def test_a_file_that_is_not_there_or_says_calls_besides_a_skew_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read topics from .*nowhere: No such file"):
        source(str(tmp_path / "nowhere"), None)
    with pytest.raises(ConfigError, match=r"topics.txt says how many calls its topics have: leave out --skew"):
        source(str(written(tmp_path, b"a\t1\n")), Zipf(0))


def test_parquet_with_tokens_is_what_the_job_topics_writes(tmp_path: Path) -> None:
    """A directory of files, more than is read at a time."""
    table = tmp_path / "topics"
    table.mkdir()
    expected = []
    for part, names in enumerate((["a", "b"], ["c"])):
        tokens = [token(name) for name in names]
        expected += tokens
        columns = {
            "topic": [*names[:-1], None],
            "token": tokens,
            "calls": [part + 1] * len(names),
            "share": [0.1] * len(names),
        }
        parquet.write_table(pa.table(columns), table / f"part-{part}.parquet")
    (table / "_SUCCESS").touch()
    batch = read(table)
    assert batch.tokens.tolist() == expected
    assert batch.calls is not None
    assert batch.calls.tolist() == [1, 1, 2]
    with pytest.raises(ConfigError, match="leave out --skew"):
        source(str(table), Zipf(1))


@pytest.mark.parametrize("topics", [["a", "é"], [1, -5], [b"\xff"]])
def test_parquet_with_topics_has_their_tokens_and_the_skew_goes_down_its_rows(
    tmp_path: Path, topics: list[Any]
) -> None:
    file = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"topic": topics}), file)
    batch = read(file, Zipf(1))
    assert batch.tokens.tolist() == [token_of(values.canonical(values.pack(topic))) for topic in topics]
    assert batch.calls is not None
    assert batch.calls.tolist() == [1 / (rank + 1) for rank in range(len(topics))]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"name": ["a"]}, "has neither a column 'token' nor 'topic', but name"),
        ({"topic": ["a", None]}, "has null in its column 'topic': leave such rows out"),
        ({"topic": [1.5]}, "topics of type double have no token here"),
        ({"token": ["x"]}, "Failed to parse string: 'x'"),
        ({"topic": ["a"], "calls": ["x"]}, "Failed to parse string: 'x'"),
        ({"topic": ["a", "b"], "calls": [1, -5]}, "t.parquet has -5 in its column 'calls'"),
        ({"topic": ["a", "b"], "calls": [1.0, float("nan")]}, "t.parquet has nan in its column 'calls'"),
        ({"topic": ["a", "b"], "calls": [1.0, float("inf")]}, "t.parquet has inf in its column 'calls'"),
    ],
)
def test_parquet_of_another_form_is_refused(tmp_path: Path, columns: dict[str, list[Any]], problem: str) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path / "t.parquet")


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(ConfigError, match=r"t\.parquet is no Parquet"):
        source(str(tmp_path / "t.parquet"), None)
    with pytest.raises(ConfigError, match=r"cannot read topics from .*u\.parquet: No such file"):
        source(str(tmp_path / "u.parquet"), None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty holds no \.parquet files"):
        source(str(tmp_path / "empty"), None)


def test_synthetic_topics_are_the_first_numbers() -> None:
    made = source("synthetic:1_000", Zipf(1))
    assert made == Numbered(1000, Zipf(1))
    batch = read("synthetic:300", Zipf(1))
    assert batch.tokens.tolist() == [token(str(number)) for number in range(300)]
    assert batch.calls is not None
    assert batch.calls[299] == pytest.approx(1 / 300)
    for text in ("synthetic:", "synthetic:x", "synthetic:0", "synthetic:1e13"):
        with pytest.raises(ValueError, match=r"whole number|it takes 1 to"):
            source(text, None)


def test_numbers_as_people_write_them() -> None:
    assert [count(text) for text in ("7", "1e8", "40k", "100M", "2G", "1_000")] == [
        7,
        10**8,
        40_000,
        10**8,
        2 * 10**9,
        1000,
    ]
    assert counts("10,100,1000", 1000) == (10, 100, 1000)
    assert counts("32..512", 512) == (32, 64, 128, 256, 512)
    assert counts("5,3..20,5", 99) == (3, 5, 6, 12, 20)
    assert counts("8..8", 99) == (8,)
    for text in ("", "1,", "..", "3..", "-1", "1.5", "9..3", "0", "100", "0..4", "1e99"):
        with pytest.raises(ValueError, match=r"whole number|allowed are 1 to 99|more than the last"):
            counts(text, 99)
