"""What a node counts and says of itself.

    metrics     each metric: its name, labels, and the cells of memory that hold it; what is made of their numbers
    counters    what a worker adds to its cells besides the core, which counts calls, bytes and turns
    shared      the memory that all processes of a node share, where the cells are
    hands       what each worker is just handing out, in memory that outlives it
    recent      what a worker remembers of the last seconds: rates of topics, closed connections
    close_reasons  why a connection was closed
    log         lines for people and machines

Uses nothing of the server.
"""
