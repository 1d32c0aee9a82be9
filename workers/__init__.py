"""The server. `skywalker` comes first, since it decides whether compiled modules are used.

    the node            command supervisor birth slot lifecycle keeper ground identity control sockets steering
                        signals exits log snapshots
    what it counts      figures board closes; in a worker tally pulse
    its agent           agent cluster circle acquaintance health
    a worker            worker loop turn alarm heap node router
    its journal         journal
    its doors           door connection outlet backlog; in MessagePack session methods, in pub/sub pubsub wording
    what clients ask    node_call calls census; publication, subscription and feeds for who subscribes
    other workers       owner peers peer guest doubt; link messages packets stream, with two ends:
                        forwarded is what we ask, held and audience are what is asked of us

A call comes in at a door, goes by the router to the junction or over a link to another worker's, and its answer goes
out at the door where it came in.
"""

import skywalker as skywalker
