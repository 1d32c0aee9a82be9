"""Silk: programs that talk to each other directly, with nobody between them, in JSON over ZeroMQ."""
