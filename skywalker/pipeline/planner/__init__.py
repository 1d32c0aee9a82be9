"""What a cluster would be like: how even rings of so many nodes and tokens are, and what it bears of which traffic.

murmur  the tokens of whole columns of topics
ring    a ring as two arrays, which node or worker owns many topics at once, and the nodes of all clusters of a plan
topics  the sources of topics: numbered, from a file, one a line or one a row; each gives batches of tokens and calls
skew    which topic gets how many of the calls
load    all topics of a source, counted by where they fall on a ring
plan    how even shares are, what changes its owner, what the hottest topics ask for, for every size of cluster
"""
