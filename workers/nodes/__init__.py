"""The workers of other nodes.

    peers           all that the ring names, and all that have come to us
    outbound_peer   one that we ask: dialled when it is wanted, and again when it is lost
    attempt         one dial: connecting, TLS, proving who we are; context is what all of these are made with
    inbound_peer    one that has come to ask us
    probe           whether the other end of a link still lives

Uses mesh, calls, engine and stats.
"""
