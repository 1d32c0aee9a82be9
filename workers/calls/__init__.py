"""What of calls is not the core's: who owns topics, what is asked of owners besides, and what a worker says of itself.

    owner           a worker that owns topics: there to be asked, or not now
    owners          all of them, by the numbers that the core has for them
    inquiries       what is asked of an owner besides calls
    rebalance       what happens to all that waits once the ring has changed
    interests       the topics that somebody here subscribes to, and where their values come from
    splits          subscriptions on their way from one worker of this node to another
    census          who waits on a topic
    doubt           why it is not known what became of a send
    worker_states   the life of this worker, as a table: where it is between its first moments and its end
    own_node        what is said of this node and of the cluster
    newcomer        a worker of another node that comes to make a link, as it says of itself
    recording       what is recorded of calls that are answered

Uses core, engine and stats.
"""
