"""Bytes to calls and back, one module a dialect. No sockets, no clocks."""
