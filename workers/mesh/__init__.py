"""The links of a worker to others: Unix sockets to its siblings, TCP to workers of other nodes.

The core reads and writes them, and has the calls that go over them: link.c, message.c, inbound.c and outbound.c there.

    messages    the words, which are the same on both
    link        one link, as far as it is not about calls: its handle, what is asked over it besides, and its end
    links       all of them, and what the core asks of who has them
    stream      what passes over one for others
    remote_interests   who subscribes at the other end of one
    siblings    all links within this node, and what happens when a sibling dies
    succession  how we wait while a sibling is replaced; what the one that is replaced does, worker/hub says
    readiness   a worker's first moments: it hears who subscribes to what before it hears clients

Uses calls, engine and stats.
"""
