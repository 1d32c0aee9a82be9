"""Whole nodes in one process, on a virtual clock, from one seed.

The machine that nodes and clients run on:

    kernel      the clock, and who takes turns by it
    machine     sockets and what goes wrong with them; ends has both ends of a connection
    processes   forks, signals, ends; threads has those of a process
    eventloop   asyncio's loop, and programs that run in it
    zeromq      the sockets of ZeroMQ, for Silk; silk_machine, the machine with these

A run of a cluster:

    node        a node: its supervisor and all that this forks, as they are
    membership  how nodes find each other; silk_member, by Silk
    clients     clients that know the wire and nothing else
    programs    programs that use our client library for asyncio
    plan        the run as data, made from a seed: the cluster, who says what when, what happens to whom
    faults      what each kind of fault does
    run         one run of a plan, and its judgement by tests.promises

What is done with runs:

    __main__    the command `python -m tests.simulation`, which runs many: `make simulate`
    failure     how a plan fails, and the smallest part of it that fails so; shrink leaves out what it can, and apart
                has each run in a process of its own
    story       what happened to some calls of a run, in words
    corpus.txt  plans that once failed, which the tests run
    ablations   safeguards, each switched off to see who notices; safeguard says what one is, safeguards has those of
                nodes, silk_safeguards of Silk
    kills       a thousand workers killed under load
    moves       ten thousand connections that move from worker to worker
    scale       what a cluster of many nodes takes
    stage       a simulation for tests that block; tests/workers/staged.py has its nodes

Of Silk: silk_run is one run and `make simulate-silk`, silk_cluster has its programs, and silk_rules judges it.
"""
