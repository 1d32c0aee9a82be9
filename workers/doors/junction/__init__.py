"""The MessagePack dialect, in which clients call.

    session     one client: who it is, replies, and which errors it hears of
    methods     what each method asks, and how it is checked
    client      frame after frame, of those that the core does not do: vetted, done, or refused

Uses doors and what that uses.
"""
