"""The agent: the process of a node for all that is slow or chatty. Traffic goes on without it.

    assembly        what it is made of, as settings say
    agent           its loop: who is in the cluster, and that the workers hear of it
    circle          the other nodes, each asked who it is (acquaintance) before it counts
    health          the port that answers whether this node lives; ping asks a worker
    admin/          the web server: metrics, the API, the console

Uses setup, access, calls, engine, ipc and stats.
"""
