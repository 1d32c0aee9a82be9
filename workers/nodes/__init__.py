"""The workers of other nodes.

    peers           all that the ring names, and all that have come to us
    peer            one that we ask: dialled when it is wanted, and again when it is lost
    peer_link       a link to one, whoever has made it: used in both directions, and ended when nobody needs it
    attempt         one dial: connecting, TLS, proving who we are; context is what all of these are made with
    relays          links over those of siblings, where there are very many workers; and what passes here of these
    relayed         one of them, as what the core reads and writes
    probe           whether the other end of a link still lives

Uses mesh, calls, engine and stats.
"""
