"""Whom a worker lets in, and what they may do.

    admission   who a connection is: by certificate, user, address, token, or a node's proof; and those of whom it is
                not known yet
    account     what one principal has open, may do, and how fast
    handshake_turns  whose turn it is to shake hands in TLS
    refusals    who was refused, in the log

Uses engine and stats.
"""
