"""The engine: calls on a server at full speed or at a rate, one rendezvous at a time, or messages to subscribers.

A Load (plan) describes all of it. `run()` has generator processes share one: each does its part in one loop, as pairs
that meet or as publications, and reports what it counts second by second; together that is an Outcome. Below them: dial
opens connections, a channel is one side of a pair and when it makes its calls, journal records them, a page at a time.
"""
