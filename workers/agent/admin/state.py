"""What a node does now: the body of /api/state, and of each event of /api/events."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workers.agent.admin import counts
from workers.agent.admin.counts import Cells
from workers.agent.admin.processes import Usage
from workers.agent.admin.samples import Sample, Samples
from workers.agent.admin.view import SERVING, View
from workers.stats import metrics
from workers.stats.shared import Live


class State:
    """Makes it once for each sample, and as a drain begins, and only if somebody asks."""

    def __init__(self, view: View, samples: Samples) -> None:
        self._view = view
        self._samples = samples
        self._of: tuple[Sample, bool] | None = None
        self._body = b""

    def body(self) -> bytes:
        """Return it as JSON."""
        latest, draining = self._samples.latest, self._view.draining
        if self._of is None or self._of[0] is not latest or self._of[1] != draining:
            self._of = latest, draining
            self._body = json.dumps(self._state(latest), separators=(",", ":")).encode()
        return self._body

    def _state(self, latest: Sample) -> dict[str, Any]:
        view, samples, total = self._view, self._samples, latest.total
        now, then = samples.span()
        open_files = samples.open_files()
        return {
            "time": latest.time,
            "node": {
                "id": view.me.id,
                "name": view.me.name,
                "version": view.version,
                "address": str(view.me.address),
                "doors": view.doors,
                "pid": view.pid,
                "started": latest.node[metrics.STARTED.at] / 1e6,
                "compiled": view.compiled,
                "steering": view.me.steering,
                "draining": view.draining,
                "ready": view.is_ready(latest.live),
                "workers": view.me.workers,
            },
            "ring": {
                "version": view.snapshot.version,
                "nodes": len(view.snapshot),
                "unproven": [*map(str, view.snapshot.unproven)],
            },
            "rates": {
                "calls": samples.rate(metrics.CALLS),
                "met": samples.met_rate(),
                "bytes_received": samples.rate(metrics.RECEIVED),
                "bytes_sent": samples.rate(metrics.SENT),
            },
            "latency": {
                "hand_off": counts.quantiles(now.hand_off, then.hand_off),
                "wait": counts.quantiles(now.wait, then.wait),
            },
            "last": dataclasses.asdict(samples.rows[-1]) if samples.rows else {},
            "waiting": counts.by_label(metrics.WAITING, total),
            "connections": counts.total(metrics.CONNECTIONS, total),
            "calls": counts.by_label(metrics.CALLS, total),
            "routed": counts.by_label(metrics.ROUTED, total),
            "closes": counts.by_label(metrics.CLOSED, total),
            "limits_hit": counts.by_label(metrics.LIMITED, total),
            "errors": counts.by_label(metrics.REFUSED, total),
            "restarts": {
                **counts.by_label(metrics.RESTARTED, latest.node),
                "agent": counts.total(metrics.AGENT_RESTARTED, latest.node),
            },
            "reloads": counts.by_label(metrics.RELOADED, latest.node),
            "workers": self._workers(latest),
            "processes": [
                {
                    "name": usage.name,
                    "pid": usage.pid,
                    "cpu": usage.cpu,
                    "rss": usage.rss,
                    "open_files": open_files.get(usage.pid, 0),
                }
                for usage in latest.processes
            ],
        }

    def _workers(self, latest: Sample) -> list[dict[str, Any]]:
        """Return what each worker does, two of a slot while one takes over; one that is gone has the pid 0."""
        before = {worker.pid: worker.cells for worker in self._samples.before.live}
        live = sorted(latest.live, key=lambda worker: worker.slot)
        nothing = [0] * len(latest.total)
        grown = [counts.grown(worker.cells, before.get(worker.pid, nothing)) for worker in live]
        calls = sum(counts.total(metrics.CALLS, cells) for cells in grown)
        usages = {usage.pid: usage for usage in latest.processes}
        now, then = self._samples.span()
        return [
            {
                **_whole(worker, latest, usages.get(worker.pid)),
                "calls": counts.total(metrics.CALLS, cells) / self._samples.seconds,
                "share": counts.total(metrics.CALLS, cells) / calls if calls else 0.0,
                "forwarded": _forwarded(cells),
                "turn_p99": counts.quantiles(now.turns[worker.slot], then.turns[worker.slot])["p99"],
            }
            for worker, cells in zip(live, grown, strict=True)
        ]


def _whole(worker: Live, latest: Sample, usage: Usage | None) -> dict[str, Any]:
    cells = worker.cells
    return {
        "slot": worker.slot,
        "pid": max(worker.pid, 0),
        "state": worker.state,
        "serving": worker.state == SERVING,
        "beat_age": max(0.0, latest.at - worker.beat) if worker.beat else 0.0,
        "cpu": usage.cpu if usage else 0.0,
        "rss": usage.rss if usage else 0,
        "connections": counts.total(metrics.CONNECTIONS, cells),
        "waiting": counts.by_label(metrics.WAITING, cells),
        "held_bytes": counts.total(metrics.HELD_BYTES, cells),
        "unread_bytes": counts.total(metrics.UNREAD, cells),
        "unsent_bytes": counts.by_label(metrics.UNSENT, cells),
        "choked": counts.total(metrics.CHOKED, cells),
        "topics": counts.total(metrics.TOPICS, cells),
    }


def _forwarded(cells: Cells) -> float:
    """Return which part of the calls went to another worker."""
    routes = counts.by_label(metrics.ROUTED, cells)
    routed = sum(routes.values())
    return (routed - routes["here"]) / routed if routed else 0.0
