"""The links of a worker to others: Unix sockets to its siblings, TCP to workers of other nodes.

    messages    the words, which are the same on both, and how packets carry them between siblings; stream does so
                between nodes
    link        one link: reading, writing, and its end
    outbound    what we ask over it: calls of our clients that wait at the other worker, which owns their topics
    inbound     what is asked of us: calls of its clients that wait here; remote_interests are its subscribers
    states      of a link, and of a call that is asked of us, as tables
    link_maker  makes links
    siblings    all links within this node, and what happens when a sibling dies
    kin         what siblings know of each other's sends, also of a dead one's
    succession  how we wait while a sibling is replaced; what the one that is replaced does, worker/core says
    readiness   a worker's first moments: it hears who subscribes to what before it hears clients

Uses calls, engine and stats.
"""
