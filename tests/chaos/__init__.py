"""What only a kernel does to real nodes under load, judged by the rules of tests.promises as simulated runs are.

run     one run: a cluster, a crowd that uses it, one kind of fault, and the judgement; `make chaos` has all kinds
faults  what each kind does
crowd   the simulation's clients, on real connections; clock and net stand in for its kernel and its machine
stalls  how long the machine kept processes waiting, which is no fault of theirs
kills   workers killed or replaced as fast as that goes: `python -m tests.chaos.kills`
many    what a cluster of 30 real nodes takes, and how soon all agree: `python -m tests.chaos.many`
"""
