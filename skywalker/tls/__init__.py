"""TLS: how contexts are made (contexts.py), and one end of a connection, in memory (records.py)."""
