"""From settings to what a node stands on, before it has processes.

    checking    `skywalker check`; faults finds all that is wrong with a file of settings
    exposure    what is open to whom, and so refused without being asked for by name
    ports       whether each door has one for itself
    ground      listeners at addresses that the node has for itself; activation takes over a manager's
    identity    who this node is: its id, name and tokens
    privileges  as which user it runs; a forked trial shows whether nobody could
    cluster     how it finds other nodes, and whether it needs an agent

Uses engine, ipc and stats.
"""
