"""What a node says of itself as a whole, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skywalker.cli.node.words import number, size, span, text


def condition(state: Mapping[str, Any]) -> str:
    """Return in one word how a node is: "serving", "draining" or "not ready"."""
    node = state["node"]
    return "draining" if node["draining"] else "serving" if node["ready"] else "not ready"


def workers(state: Mapping[str, Any]) -> str:
    """Return how many workers serve, of how many."""
    return f"{sum(1 for each in state['workers'] if each['state'] == 'serving')} of {state['node']['workers']}"


def uptime(state: Mapping[str, Any]) -> str:
    """Return how long the node has run."""
    return span(max(0.0, state["time"] - state["node"]["started"]))


def waiting(state: Mapping[str, Any]) -> str:
    """Return who waits, by kind."""
    return ", ".join(f"{number(count)} {text(kind)}" for kind, count in state["waiting"].items())


def facts(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and texts."""
    node, ring, rates = state["node"], state["ring"], state["rates"]
    how = ["compiled" if node["compiled"] else "plain Python", "steering" if node["steering"] else "no steering"]
    yield "node", f"{text(node['name'])} at {text(node['address'])}, pid {text(node['pid'])}, id {text(node['id'])}"
    yield "version", ", ".join([text(node["version"]), *how])
    yield "state", f"{condition(state)}, {workers(state)} workers serve, up {uptime(state)}"
    yield "ring", f"{text(ring['version'])}, {number(ring['nodes'])} node{'' if ring['nodes'] == 1 else 's'}"
    yield "calls", f"{number(rates['calls'])}/s, of which {number(rates['met'])}/s met"
    yield "bytes", f"{size(rates['bytes_received'])}/s in, {size(rates['bytes_sent'])}/s out"
    for label, key in (("hand-off", "hand_off"), ("wait", "wait")):
        times = state["latency"][key]
        yield label, f"p50 {span(times['p50'])}, p99 {span(times['p99'])} in the last minute"
    yield "waiting", waiting(state)
    yield "connections", number(state["connections"])
