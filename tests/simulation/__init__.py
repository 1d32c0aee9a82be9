"""Whole nodes in one process, on a virtual clock, from one seed.

    kernel     the clock, processes, descriptors, connections and what may go wrong with them
    node       a node: its supervisor's crew and its workers, as they are, on that kernel
    client     clients that know the wire and nothing else, and what they saw
    rules      what must hold of all that was seen
    run        one run: a cluster, clients, faults, and their judgement

`python -m tests.simulation` runs many.
"""
