"""A worker in C over flat tables: its connections, frames, calls, links, timers, turns.

core.h is the map of it. It is C, and knows no Python; _core.pyx is the way in, and to whatever is rare: how a
connection comes in, other methods, errors. That is an object with the methods of Rare. What else Python does in a turn,
a Moment has, of which Turn in workers/engine/loop.py is one.
"""
