"""The supervisor, which forks all other processes and outlives each of them.

    command     `skywalker serve`
    start       what is done once, before there are processes; it names the real machine
    supervisor  has the workers and the agent forked, and sees to them until the node ends
    child       a process that it has forked: heard, killed and reaped
    slot        a worker's place, its processes, and the table of their lives
    crew        all workers: linked to each other, and what happens when one dies
    agent_keeper  the agent: started again when it dies
    reload      what a running node takes from new settings, and how its workers are replaced one by one
    liveness    whether the loops of all processes turn, and what is done about one that does not
    notify      tells systemd

Uses worker, setup, calls, engine, ipc and stats.
"""
