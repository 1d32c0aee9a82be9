"""The workers of other nodes.

    peers           all that the ring names, and all that have come to us
    peer            one that we ask: dialled when it is wanted, and again when it is lost
    peer_link       a link to one, whoever has made it: used in both directions, and ended when nobody needs it
    attempt         one dial: connecting, TLS, proving who we are; context is what all of these are made with
    probe           whether the other end of a link still lives

Uses mesh, calls, engine and stats.
"""
