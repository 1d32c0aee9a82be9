"""Whole nodes in one process, on a virtual clock, from one seed.

    kernel     the clock, and processes that take turns
    machine    sockets and what goes wrong with them: what a worker asks of the machine
    eventloop  asyncio's loop, and programs that run in it, on that machine
    node       a node: its supervisor's crew and its workers, as they are, on that machine
    clients    clients that know the wire and nothing else
    programs   programs that use our client library for asyncio
    plan       a run as data, made from a seed: the cluster, who says what when, what happens to whom
    faults     what each kind of fault does
    run        one run of a plan, and its judgement by tests.promises
    failure    how a plan fails, and the smallest part of it that fails so
    shrink     what can be left out of a plan
    story      what happened to some calls of a run, in words
    ablations  safeguards of the product, each switched off to see who notices

`python -m tests.simulation` runs many.
"""
