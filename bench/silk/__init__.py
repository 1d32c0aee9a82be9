"""Silk's membership in simulated time: what it says how often, and how soon all know."""
