"""`skywalker demo`: a node at work, watched. Its parts are the command, what it shows, and the two sides of the run."""
