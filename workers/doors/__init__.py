"""Connections of clients.

    door            a listener: accepts, and gives each connection to its dialect; handshake is a connection before TLS
    connections     all that are open; commons is what they have in common
    connection      one of them: what comes in, what is written and what that is worth, and how it ends; write_buffer
                    is what is unwritten, of one that is slow; states has a table of its states
    clients         those whose calls are the core's, and what the core asks of them; client is one, and
                    subscriber what one subscribes to
    subscription    what a connection subscribes to, and values on their way to it
    pubsub          the dialect of publish and subscribe, with its acks; pubsub_wording makes its messages
    junction/       the dialect of calls

Uses access, calls, engine and stats; neither mesh nor nodes.
"""
