"""The demo's word count: lines go in by one topic, and counts come out by another."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skywalker.cli.demo_pipeline.word_count import lines_of, word_count
from skywalker.embedding import Node


def test_the_counts_are_those_of_the_file_and_are_shown(
    spark: SparkSession, skywalker_node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "text"
    file.write_bytes("To be, or not to be.\nÜber alles\n\nbe2be ".encode() * 20 + b"\xff\n")  # the last is no UTF-8
    assert word_count(skywalker_node.address, file, spark=spark, seconds=0.5)
    shown = capfd.readouterr().out
    assert "lines 61 in" in " ".join(shown.split())
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("  be ")] == [["be", "80"]]
    assert "words 200 6 of them different" in " ".join(shown.split())
    assert "the stream counts what is in the file, word by word" in shown


def test_a_file_is_cut_where_it_would_take_too_long(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"x\n" * 30_000)
    assert len(lines_of(file)) == 20_000
    file.write_bytes(b"x" * 40_000)
    assert [*map(len, lines_of(file))] == [16_384, 16_384, 40_000 - 2 * 16_384]
