"""Topics as tables: the Spark format "skywalker", to read from and to write to."""
