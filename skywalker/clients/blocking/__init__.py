"""The blocking client. What says the same to tasks is written in `skywalker.clients.aio`, and made from that."""
