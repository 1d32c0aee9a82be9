"""Fan-out: one message to many subscribers, beside Redis and NATS. `python -m bench.fanout` runs it."""
