"""What a node does now: the body of /api/state, and of each event of /api/events."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

from workers.agent.admin.processes import Usage
from workers.agent.admin.samples import Sample, Samples
from workers.agent.admin.view import SERVING, View
from workers.stats import metrics
from workers.stats.metrics import Cells
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

    async def events(self) -> AsyncIterator[bytes]:
        """Yield it as server-sent events, for one listener. Who reads slowly gets fewer, and always the latest."""
        while True:
            yield b"event: state\ndata: %b\n\n" % self.body()
            await self._samples.next()

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
                "hand_off": metrics.quantiles(now.hand_off, then.hand_off),
                "wait": metrics.quantiles(now.wait, then.wait),
            },
            "last": dataclasses.asdict(samples.rows[-1]) if samples.rows else {},
            "waiting": metrics.WAITING.by_label(total),
            "connections": metrics.CONNECTIONS.total(total),
            "calls": metrics.CALLS.by_label(total),
            "routed": metrics.ROUTED.by_label(total),
            "moves": metrics.MOVED.by_label(total),
            "closes": metrics.CLOSED.by_label(total),
            "limits_hit": metrics.LIMITED.by_label(total),
            "errors": metrics.REFUSED.by_label(total),
            "restarts": {
                **metrics.RESTARTED.by_label(latest.node),
                "agent": metrics.AGENT_RESTARTED.total(latest.node),
            },
            "reloads": metrics.RELOADED.by_label(latest.node),
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
        grown = [metrics.grown(worker.cells, before.get(worker.pid, nothing)) for worker in live]
        calls = sum(metrics.CALLS.total(cells) for cells in grown)
        usages = {usage.pid: usage for usage in latest.processes}
        now, then = self._samples.span()
        return [
            {
                **_whole(worker, latest, usages.get(worker.pid)),
                "calls": metrics.CALLS.total(cells) / self._samples.seconds,
                "share": metrics.CALLS.total(cells) / calls if calls else 0.0,
                "forwarded": _forwarded(cells),
                "turn_p99": metrics.quantiles(now.turns[worker.slot], then.turns[worker.slot])["p99"],
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
        "connections": metrics.CONNECTIONS.total(cells),
        "waiting": metrics.WAITING.by_label(cells),
        "held_bytes": metrics.HELD_BYTES.total(cells),
        "unread_bytes": metrics.UNREAD.total(cells),
        "unsent_bytes": metrics.UNSENT.by_label(cells),
        "choked": metrics.CHOKED.total(cells),
        "topics": metrics.TOPICS.total(cells),
    }


def _forwarded(cells: Cells) -> float:
    """Return which part of the calls went to another worker."""
    routes = metrics.ROUTED.by_label(cells)
    routed = sum(routes.values())
    return (routed - routes["here"]) / routed if routed else 0.0
