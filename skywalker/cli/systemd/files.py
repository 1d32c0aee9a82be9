"""Which files there are, what each is called in systemd/, and where it goes on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skywalker.cli.systemd import settings, units
from skywalker.cli.systemd.plan import Plan


@dataclass(frozen=True, slots=True)
class File:
    """One of them."""

    name: str
    path: str  # where it is installed
    text: Callable[[Plan], str]
    is_yours: bool = False  # it is there to be edited: once there, it is left as it is


FILES: Final = (
    File("skywalker.service", "/etc/systemd/system/skywalker.service", units.service),
    File("skywalker@.service", "/etc/systemd/system/skywalker@.service", units.instance),
    File("skywalker.socket", "/etc/systemd/system/skywalker.socket", units.junction_socket),
    File("skywalker-pubsub.socket", "/etc/systemd/system/skywalker-pubsub.socket", units.pubsub_socket),
    File("skywalker.sysusers", "/etc/sysusers.d/skywalker.conf", units.sysusers),
    File("skywalker.tmpfiles", "/etc/tmpfiles.d/skywalker.conf", units.tmpfiles),
    File("skywalker.toml", "/etc/skywalker/skywalker.toml", lambda _: settings.config_file(), is_yours=True),
    File("skywalker.env", "/etc/skywalker/skywalker.env", lambda _: settings.environment_file(), is_yours=True),
)

CONFIG: Final = "/etc/skywalker/skywalker.toml"
