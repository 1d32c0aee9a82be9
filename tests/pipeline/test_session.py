"""The session: made once, kept if somebody else made it, and what is missing named in one sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skywalker import extras
from skywalker.errors import ConfigError
from skywalker.pipeline import session
from tests.helpers import time_factor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError) as caught:
        session._java()
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and there is no 'java' on PATH, and no JAVA_HOME; "
        "install one, on Debian: apt-get install openjdk-17-jre-headless"
    )


def test_a_java_home_without_java_is_named_even_if_path_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = f"Spark needs Java 17 or newer, and there is none in JAVA_HOME ({tmp_path}); install one"
    with pytest.raises(ConfigError, match=re.escape(said)):
        session._java()


# What a command does that wants a session: the error's text is all that a user sees.
SAY_WHAT_IS_MISSING = """
from skywalker.errors import ConfigError
from skywalker.pipeline import session
try:
    session.local()
except ConfigError as error:
    print(error)
"""


def test_a_java_that_cannot_run_spark_is_named_below_what_it_said(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho UnsupportedClassVersionError: 61.0 >&2\nexit 1\n")
    java.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", SAY_WHAT_IS_MISSING],
        env={"PATH": os.environ["PATH"], "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60 * time_factor(),
        check=True,
    )
    assert ran.stdout.strip() == f"{java} could not run Spark, which needs Java 17 or newer; it said why above"
    assert "UnsupportedClassVersionError: 61.0" in ran.stderr


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "pandas"])
def test_without_a_package_the_error_says_how_to_get_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing that follows finds the package, as where only the client's own needs are installed.
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError) as caught:
        session.local()
    assert str(caught.value).startswith(f"the pipeline runs on Spark, and {missing} cannot be imported (")
    assert str(caught.value).endswith(f"): {extras.command_for('spark')}")


def test_a_local_session_needs_a_core() -> None:
    with pytest.raises(ConfigError, match="cores is 0; a local Spark needs at least 1"):
        session.local(cores=0)


def test_the_session_listens_on_loopback_only_and_counts_in_utc(spark: SparkSession) -> None:
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.driver.bindAddress") == "127.0.0.1"
    assert settings.get("spark.ui.enabled") == "false"
    (row,) = spark.sql("select cast(timestamp'1970-01-01 00:00:01' as long) as second").collect()
    assert row.second == 1


def test_the_session_that_is_active_is_used_and_keeps_its_settings(spark: SparkSession) -> None:
    before = spark.sparkContext.getConf().getAll()
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    again = session.local(app="another", cores=1)
    assert again.sparkContext is spark.sparkContext
    assert again.sparkContext.getConf().getAll() == before
    assert again.conf.get("spark.sql.shuffle.partitions") == "3"


def test_tasks_run_in_the_python_of_the_session(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    python = udf(lambda _: sys.executable)
    assert [row[0] for row in spark.range(1).select(python("id")).collect()] == [sys.executable]
