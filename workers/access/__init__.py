"""Whom a worker lets in, and what they may do.

    admission   who a connection is: by certificate, user, address, token, or a node's proof
    account     what one principal has open, and may do; bucket is its rate
    strangers   those of whom it is not known yet who they are
    handshakes  whose turn it is to shake hands in TLS
    refusals    who was refused, in the log

Uses engine and stats.
"""
