"""The process of a worker.

    worker      from its fork to its end: what the supervisor tells it, draining, leaving
    hub         what it consists of, put together around the core; how it follows a ring, drains, and hands over to
                its successor
    heartbeat   by which the supervisor sees that its loop turns; with it gauges
    heap        memory that is given back
    inspection  what it tells the agent of its topics and connections

Uses every room but agent and process.
"""
