"""How it went in the last minutes: the body of /api/history."""

from __future__ import annotations

import dataclasses
import json

from workers.agent.admin.samples import STEP_S, Row, Samples


def body(samples: Samples) -> bytes:
    """Return it as JSON: a list for each number, the oldest first."""
    columns = {field.name: [getattr(row, field.name) for row in samples.rows] for field in dataclasses.fields(Row)}
    return json.dumps({"step": STEP_S, "time": samples.latest.time, **columns}, separators=(",", ":")).encode()
