"""One Spark for a command or a test: local, soon there and quiet, or the one that is already running."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skywalker import extras
from skywalker.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

# A local session is a short one: with one compiler tier and the simplest collector the JVM is there a fifth sooner.
# Spark puts these before spark.driver.extraJavaOptions, so what a caller says there wins (-XX:TieredStopAtLevel=4).
_JAVA_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    f" -Dlog4j2.configurationFile={_LOG4J.as_uri()}"
)


def local(app: str = "skywalker", cores: int | None = None, **conf: str) -> SparkSession:
    """Return the session that is active, or else a local one named `app` that uses `cores` (None: all there are).

    `conf` holds settings by Spark's own names: local(**{"spark.driver.memory": "4g"}). They go before the ones made
    here. A session that somebody else made (spark-submit, SPARK_REMOTE, "spark.remote", the caller's own) keeps its
    settings, but for those in `conf` that Spark can still change.

    Raises ConfigError if pyspark or Java is missing, or `cores` is less than one.
    """
    if cores is not None and cores < 1:
        raise ConfigError(f"cores is {cores}; a local Spark needs at least 1, or None for all there are")
    _need_pyspark()
    from pyspark.errors import PySparkImportError, PySparkRuntimeError
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None or _made_elsewhere(conf):
        try:
            return SparkSession.builder.config(map=dict(conf)).getOrCreate()
        except PySparkImportError as error:
            raise ConfigError(f"Spark Connect needs more ({error}): pip install 'pyspark[connect]'") from error
    java = _java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.config(
        map={**_settings(cores or os.cpu_count() or 1), "spark.app.name": app, **conf}
    )
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ConfigError(f"{java} could not run Spark, which needs Java 17 or newer; it said why above") from error


def _need_pyspark() -> None:
    # PySpark installs without the other two, and misses them only when a job is under way.
    for name in ("pyspark", "pyarrow", "pandas"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ConfigError(
                f"the pipeline runs on Spark, and {name} cannot be imported ({error}): {extras.command_for('spark')}"
            ) from error


def _made_elsewhere(conf: dict[str, str]) -> bool:
    """Whether Spark runs already, or is somewhere else: under spark-submit, or reached through Spark Connect."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ or "spark.remote" in conf


def _java() -> str:
    """The Java that Spark will run, found the way Spark finds it."""
    home = os.environ.get("JAVA_HOME")
    # As with Spark's own scripts, a JAVA_HOME hides the java of PATH even if there is none in it.
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        where = f"there is none in JAVA_HOME ({home})" if home else "there is no 'java' on PATH, and no JAVA_HOME"
        raise ConfigError(
            f"Spark needs Java 17 or newer, and {where}; "
            "install one, on Debian: apt-get install openjdk-17-jre-headless"
        )
    return java


def _settings(cores: int) -> dict[str, str]:
    return {
        "spark.master": f"local[{cores}]",
        "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # All partitions run here, so more of them than cores is only work.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
