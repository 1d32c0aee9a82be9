"""Where Spark looks for the format "skywalker-journal": it tries every top-level module that starts with pyspark_."""

from skywalker.pipeline.journals.source import JournalSource as DefaultSource

__all__ = ["DefaultSource"]
