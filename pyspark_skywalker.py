"""Where Spark looks for the format "skywalker": it tries every top-level module whose name starts with pyspark_."""

from skywalker.pipeline.tables.source import TableSource as DefaultSource

__all__ = ["DefaultSource"]
