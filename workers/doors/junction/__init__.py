"""The MessagePack dialect, in which clients call.

    session     one client: its calls that wait (waiting), what it has not acknowledged (unacked), replies
    methods     what each method asks, and how it is checked
    vetting     whether a client may ask now at all, and how it is refused
    hearing     which errors a client hears of
    dialogue    frame after frame: cut out of the bytes, vetted, done
    silence     whether a client that says nothing still lives

Uses doors and what that uses.
"""
