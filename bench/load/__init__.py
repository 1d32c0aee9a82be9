"""The engine: calls on a server at full speed or at a rate, one rendezvous at a time, or messages to subscribers.

A Load (plan) describes all of it. `run()` has generator processes share one: each does its part (work) in one loop, as
pairs that meet or as publications, and reports what it counts second by second; together that is an Outcome. Below
them: dial opens connections, a line is one of them, a channel is one side of a pair and a stream an end of a
publication, pace decides when calls are made that are not made again at once, journal records them.
"""
