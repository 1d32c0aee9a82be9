"""The MessagePack dialect, in which clients call.

    session     one client: its calls that wait, and how many may, what it has not acknowledged, replies and which
                errors it hears of, and whether it still lives if it says nothing
    methods     what each method asks, and how it is checked
    dialogue    frame after frame: cut out of the bytes, vetted, done, or refused
    rare        what is left to do of all that where calls are the core's

Uses doors and what that uses.
"""
