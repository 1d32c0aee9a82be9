"""The blocking client of pub/sub: threads share what it offers, and no thread is there but the callers' own.

What says the same to tasks is written in `skywalker.pubsub.aio`, and made from that.
"""
