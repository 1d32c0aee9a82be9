"""The agent's web server: metrics for Prometheus, JSON for programs, a console for people.

    serves      server (its thread and what it is told), transport, tls (below that), app
    lets in     guard (by name), gate (by who asks)
    knows       view (of the node), samples (of the shared counters), processes, questions (to the workers)
    shows       exposition (of metrics), state (and its events), ring, lists (of topics and connections), console

Only the agent imports these: what they are built on is not always installed.
"""
