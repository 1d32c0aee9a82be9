"""The journal as a table: the Spark format "skywalker-journal", read at once or as it grows."""
