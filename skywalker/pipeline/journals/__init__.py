"""The journal as a table: the Spark format "skywalker-journal", read at once or as it grows.

source      the format: the options of a read, what each task reads, and readers of three kinds
position    how far a stream has read, and what it reads next
columns     records and names as Arrow batches
"""
