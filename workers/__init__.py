"""The server, in rooms.

    core        in C, over flat tables: a worker's turns, descriptors and times; and the hot way of a call, which no
                worker takes yet, and bench.core measures
    stats       what is counted and logged
    engine      what a process of the node runs on: its loop, turns and alarms, sockets plain and in TLS
    ipc         what the processes of a node say to each other
    calls       what a call is, who asks and who carries it, and where it goes
    mesh        the links of a worker: what it asks of another worker over one, and what is asked of it
    nodes       the workers of other nodes, at the other ends of such links
    access      whom a worker lets in
    doors       connections of clients, in both dialects; junction/ has that of calls, pubsub.py that of pub/sub
    setup       from settings to what a node stands on: addresses, identity, user, cluster
    agent       the process for all that is slow or chatty; admin/ has the web server
    worker      a worker's process, put together of all that
    process     the supervisor, which forks the others, and the command that becomes it

Each room's docstring has its files. A room imports those above it in this list, and none below; doors know neither
mesh nor nodes. tests/test_layout.py holds that.

A call comes in at a door, goes by the router to the junction or over a link to another worker's, and its answer goes
out at the door where it came in.
"""
