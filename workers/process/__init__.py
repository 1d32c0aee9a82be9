"""The supervisor, which forks all other processes and outlives each of them.

    command     `skywalker serve`
    supervisor  forks the workers and the agent, and sees to them until the node ends
    crew        the workers, each in a slot; lifecycle is the table of their lives
    birth       a fork; keeper keeps the agent alive
    reload      workers of another configuration, one after another: rollout
    liveness    whether the loops of all processes turn, by a watchdog for each; notify tells systemd

Uses worker, setup, calls, engine, ipc and stats.
"""
