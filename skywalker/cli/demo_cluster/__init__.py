"""`skywalker demo-cluster`: a cluster at work while its nodes come and go, watched.

Its parts are the nodes and what they find each other by, the traffic, what befalls the
nodes, the ring as the cluster tells it, and the screen.
"""
