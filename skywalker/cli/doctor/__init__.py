"""`skywalker doctor`: what of a machine keeps a node from working, or from working well."""
