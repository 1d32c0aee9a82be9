"""The agent's web server: figures for Prometheus, JSON for programs, a console for people.

    server      admin (its thread and what it is told), listener, connections, app, guard, extra
    knows       view (of the node), samples and sample (of the board), processes, questions (to the workers)
    shows       metrics, state, history, ring, topics and clients, health, stream, console.html

Only the agent imports these, but for listener and extra: what they are built on is not always installed.
"""
