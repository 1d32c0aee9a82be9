"""The load test: calls on a node at full speed or at a rate, through whatever happens to it."""
