"""What a node that runs can take over from new settings, and what only a new start can change."""

from __future__ import annotations

import dataclasses
from typing import Final

from skywalker.config import SETTINGS, Config

FIXED: Final = frozenset(
    (
        *("bind", "port", "pubsub", "pubsub_bind", "pubsub_port", "workers", "backlog"),  # sockets, and their number
        *("admin", "admin_bind", "admin_port", "unix"),
        *("state_dir", "name", "tokens", "advertise"),  # who the node is to others
        "user",  # there is no way back
    )
)
"""Keys that a node keeps as it was started with."""


def merged(old: Config, new: Config) -> tuple[Config, list[str]]:
    """Return the settings to go on with, and the paths of those whose change must wait for a new start."""
    waiting = [setting.path for setting in SETTINGS if setting.key in FIXED and setting.of(old) != setting.of(new)]
    kept = {each.key: each.of(old) for each in SETTINGS if each.key in FIXED and not each.table}
    in_cluster = {each.key: each.of(old) for each in SETTINGS if each.key in FIXED and each.table == "cluster"}
    if old.bind != new.bind:
        # Where these are not told a host of their own they have followed a `bind` that is not taken over.
        in_cluster |= {key: getattr(old.cluster, key) for key in ("silk", "silk_pub")}
    cluster = dataclasses.replace(new.cluster, **in_cluster)  # type: ignore[arg-type]  # each is of its field's type
    return dataclasses.replace(new, cluster=cluster, **kept), waiting  # type: ignore[arg-type]  # the same
