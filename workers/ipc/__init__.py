"""What the processes of a node say to each other.

    control     the channel between the supervisor and a child, and its messages
    snapshots   the members of the cluster, on their way from the agent to the workers
    exits       with which status a process ends, and what that means

Uses nothing of the server.
"""
