"""Connections of clients, as far as they are not the core's, which reads and writes them and has their calls.

    door            a listener: accepts, and has each connection let in by its dialect; handshake is one before TLS
    clients         those that are here, and what the core asks of them; commons is what they have in common
    client          one of them: who it is, what it subscribes to, and how it ends; subscriber is one subscription
    pubsub_client   the dialect of publish and subscribe
    junction/       the dialect of calls

Uses access, calls, core, engine and stats; neither mesh nor nodes.
"""
