"""`skywalker top`: the console for a terminal."""
