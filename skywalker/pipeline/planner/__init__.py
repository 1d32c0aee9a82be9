"""What a cluster would be like: how even rings of so many nodes and tokens are, and what it bears of which traffic.

murmur  the tokens of whole columns of topics
ring    a ring as two arrays, and which node or worker owns many topics at once
fleet   the nodes of all clusters of a plan, each with its tokens
topics  numbered topics, and what any source of topics gives: batches of tokens and calls
text_file, parquet
        topics from a file, one a line or one a row
sources the source of topics that an option names
skew    which topic gets how many of the calls
load    all topics of a source, counted by where they fall on a ring
balance how even shares are
moves   what changes its owner when a node comes or goes
heat    what the hottest topics ask of the worker that owns them
plan    all of it, for every size of cluster
"""
