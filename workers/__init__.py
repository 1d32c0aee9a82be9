"""The server, in rooms.

    core        in C, over flat tables: a worker's connections, calls and links, and its turns
    stats       what is counted and logged
    engine      what a process of the node runs on: its loop, turns and alarms, sockets plain and in TLS
    ipc         what the processes of a node say to each other
    calls       of calls what is not the core's: who owns topics, who subscribes, what a new ring moves
    mesh        the links of a worker to others, as far as they are not the core's
    nodes       the workers of other nodes, at the other ends of such links
    access      whom a worker lets in
    doors       clients of both dialects, as far as they are not the core's; junction/ has that of calls
    setup       from settings to what a node stands on: addresses, identity, user, cluster
    agent       the process for all that is slow or chatty; admin/ has the web server
    worker      a worker's process, put together of all that
    process     the supervisor, which forks the others, and the command that becomes it

Each room's docstring has its files. A room imports those above it in this list, and none below; doors know neither
mesh nor nodes. tests/test_layout.py holds that.

A call comes in over a connection that a door has let in. In the core it meets another, here or over a link at the
worker that owns its topic, and its answer goes out where it came in.
"""
