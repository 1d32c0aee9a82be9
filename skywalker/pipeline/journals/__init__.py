"""The journal as a table: the Spark format "skywalker-journal", read at once or as it grows.

source      the format, which makes a reader of one of three kinds: two in reader, stream
reading     the options of a read
position    how far a stream has read, and what it reads next
parts       what each task reads, and its reading
columns     records and names as Arrow batches
"""
