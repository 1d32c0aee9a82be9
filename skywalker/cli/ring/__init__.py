"""`skywalker ring` and `skywalker route`: who owns what, asked of the nodes, and drawn in text and as a picture."""
