"""`skywalker silk`: nodes of Silk on the command line. Each file is a command, but for what they have in common."""
