"""The server. `skywalker` comes first, since it decides whether compiled modules are used.

    the node            command checking faults exposure; supervisor; its workers: crew slot lifecycle birth rollout
                        reload, vitals and watchdog; its agent: keeper; what it stands on: ground identity activation
                        sockets steering privileges; what is said: control snapshots signals notify log exits
    what it counts      figures board closes; in a worker tally lately pulse
    its agent           agent cluster circle acquaintance health ping admin; inspection in a worker, which it asks
    a worker            worker opening loop turn alarm heap node router move
    its journal         journal
    its doors           door connection outlet backlog; in MessagePack session methods waiting unacked silence, in
                        pub/sub pubsub wording
    who comes in        admission account bucket strangers vetting refusals; over TLS: handshakes handshake
                        secure_socket credentials renewed
    what clients ask    node_call calls will census; publication, subscription and feeds for who subscribes
    other workers       owner siblings handover peers peer attempt guest doubt; link messages packets stream, with two
                        ends: forwarded is what we ask, held and audience are what is asked of us

A call comes in at a door, goes by the router to the junction or over a link to another worker's, and its answer goes
out at the door where it came in.
"""

import skywalker as skywalker
