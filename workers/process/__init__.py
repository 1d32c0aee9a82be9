"""The supervisor, which forks all other processes and outlives each of them.

    command     `skywalker serve`
    supervisor  has the workers and the agent forked, and sees to them until the node ends
    crew        the workers, each in a slot, and what happens when one dies; lifecycle is the table of their lives
    birth       a fork; keeper keeps the agent alive
    reload      workers of another configuration, one after another: rollout
    liveness    whether the loops of all processes turn, by a watchdog for workers and one for the agent; notify
                tells systemd

Uses worker, setup, calls, engine, ipc and stats.
"""
