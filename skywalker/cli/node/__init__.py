"""What a node tells of itself, in words and tables: for all commands that ask its admin server."""
