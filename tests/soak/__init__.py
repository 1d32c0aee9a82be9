"""A soak: nodes that are used and hit in every way for minutes or hours, and must be afterwards what they were before.

__main__    the command: `python -m tests.soak`, or `make soak`
stage       the nodes: one is spared, and shows what leaks with use; the other is battered
roster      the programs that use them, each for a shift, then ended or killed
trouble     what is done to the battered node, and when that was felt
gauge       what the processes of the nodes take, and what the nodes say of themselves, sample by sample
promises    judges all that the programs noted, by the rules of tests.promises
flatness    what must hold of the samples
background  what has a thread of its own: trouble, gauge, lateness
page        how it is shown
programs    what runs in processes of its own: crowd, pairs, visitors, members, watchers, ruffians; and bench.load
            as it is
"""
