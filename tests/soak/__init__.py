"""A soak: nodes that are used and hit in every way for minutes or hours, and must be afterwards what they were before.

__main__    the command: `python -m tests.soak`, or `make soak`
stage       the nodes: one is spared, and shows what leaks with use; the other is battered
roster      the programs that use them, each for a shift, then ended or killed
trouble     what is done to the battered node
gauge       what the processes of the nodes take, and what the nodes say of themselves, sample by sample
flatness    what must hold of the samples
background  what has a thread of its own: trouble, gauge
page        how it is shown
programs    what runs in processes of its own: visitors, members, watchers, ruffians; and bench.load as it is
"""
