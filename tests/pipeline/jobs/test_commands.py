"""The commands, in this process on the shared Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skywalker.cli import exits
from skywalker.cli.outcome import run
from skywalker.cli.pipeline.command import pipeline
from skywalker.cli.pipeline.options import save
from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.counts import keys
from skywalker.pipeline.jobs.owners import NO_OWNERS
from tests.helpers import time_factor
from tests.pipeline.jobs import segments
from tests.pipeline.jobs.records import a_ring


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 records that stand for 120 calls."""
    directory = tmp_path_factory.mktemp("journal")
    segments.write(directory, 60)
    segments.write_names(directory, {-3: b"\xa4jobs"})
    return directory


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """What `skywalker ring --json` prints."""
    file = tmp_path / "ring.json"
    file.write_text(json.dumps({"status": "answered", "value": {"nodes": [each.as_map() for each in a_ring()]}}))
    return file


TELL = """
import sys
from skywalker.pipeline.__main__ import main

ended = sys.exit
sys.exit = print
program = sys.argv[0]
for arguments in [[], *([name] for name in sys.argv[1:])]:
    sys.argv = [program, *arguments, "--help"]
    main()
    print(sorted({"pyspark", "pyarrow", "numpy", "matplotlib"} & {*sys.modules}))
ended()
"""


def test_every_command_tells_about_itself_without_spark() -> None:
    names = pipeline.list_commands(None)  # type: ignore[arg-type]
    said = subprocess.run(
        [sys.executable, "-c", TELL, *names], capture_output=True, text=True, check=True, timeout=60 * time_factor()
    )
    each = said.stdout.split("[]\n")
    assert each.pop() == ""
    assert len(each) == 1 + len(names)
    assert all("Usage:" in help for help in each)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [(["topics", "--most", "3"], "jobs"), (["latency", "--by", "worker", "--by", "method"], "p999_us")],
    ids=lambda given: given[0],
)
def test_a_job_prints_its_table(
    spark: SparkSession, journal: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], wanted: str
) -> None:
    assert run(pipeline, [*arguments, "--input", str(journal)], "pipeline") == exits.OK
    assert wanted in capfd.readouterr().out
    assert SparkSession.getActiveSession() is not None, "a session that is not its own was stopped"


def test_a_job_writes_its_table(
    spark: SparkSession, journal: Path, ring: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "balance"
    arguments = ["--input", str(journal), "--ring", str(ring), "--output", str(out), "--format", "json", "--rows", "1"]
    assert run(pipeline, ["balance", *arguments], "pipeline") == exits.OK
    assert len(capfd.readouterr().out.splitlines()) == 2
    written = [json.loads(line) for file in out.glob("*.json") for line in file.read_text().splitlines()]
    assert sum(row["owned"] for row in written if row["level"] == "token") == 120


def test_a_table_takes_the_place_of_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").touch()
    (tmp_path / "calls").mkdir()
    with pytest.raises(ConfigError, match="holds 'calls', which is of no table, and all in it would be deleted"):
        save(None, tmp_path, "parquet")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Not a directory"):
        save(None, tmp_path / "part-0.parquet", "parquet")  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls", "part-0.parquet"]


def test_what_is_wrong_with_the_input_is_said_in_one_line(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(pipeline, ["topics", "--input", str(tmp_path / "nowhere")], "pipeline") == exits.USAGE
    said = capfd.readouterr().err
    assert "there is no directory" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("text", ["", "[]", '{"value": {"nodes": []}}', '{"value": {"nodes": [{"id": "a"}]}}'])
def test_a_file_that_holds_no_ring_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "ring").write_text(text)
    with pytest.raises(ConfigError, match="ring"):
        NO_OWNERS.with_ring(tmp_path / "ring")


def test_a_group_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="cannot be told apart by 'colour'; choose from topic, minute"):
        keys(("node", "colour"))
