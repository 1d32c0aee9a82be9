"""What a call is, who has asked it and who carries it elsewhere, and where it goes.

    call            a call as every worker sees it, and one of our own clients from arrival to answer: its clock, and
                    so its timeout, is here. With it what it needs of others: Caller, Carrier, Routing
    states          what can become of it, as a table
    doubt           why it is not known what became of a send
    inquiries       what is asked of the owner of a topic besides calls
    publication     what is published, until it is in effect
    will            what is published if a connection is lost
    orphans         what was published by connections that are gone, until it is in effect
    owner           a worker that owns topics: there to be asked, or not now
    router          where a call goes: the junction here, or the worker that owns its topic
    rebalance       what happens to all that waits once the ring has changed
    interests       the topics that somebody here subscribes to, and where their values come from
    census          who waits on a topic
    ledger          what is held for clients: how many calls, how much memory
    worker_states   the life of this worker, as a table: where it is between its first moments and its end
    own_node        what is said of this node and of the cluster
    journal         what is recorded of calls that are answered; recording has that of those that are the core's

Uses engine and stats.
"""
