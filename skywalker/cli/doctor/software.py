"""What is installed: the kernel, Python and packages, and how the hot modules were built."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator
from typing import Final

import skywalker
from skywalker import build, extras
from skywalker.cli.doctor.finding import Finding, weighed
from skywalker.cli.doctor.machine import Machine
from skywalker.config import Config

STEERING_KERNEL: Final = (4, 6)
"""The first Linux with which a program may choose among the listeners of a TCP port."""

REQUIRED: Final = ("msgpack", "mmh3", "click")


def versions(config: Config, machine: Machine) -> Iterator[Finding]:
    """Name what is there, for whoever asks for help."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in REQUIRED)
    found = f"skywalker {skywalker.__version__}, Python {platform.python_version()}, {packages}"
    yield Finding("versions", "ok", found)


def kernel(config: Config, machine: Machine) -> Iterator[Finding]:
    """An old one cannot steer."""
    match = re.match(r"(\d+)\.(\d+)", machine.kernel)
    is_new = match is not None and (int(match[1]), int(match[2])) >= STEERING_KERNEL
    oldest = ".".join(map(str, STEERING_KERNEL))
    yield weighed("kernel", is_new, f"Linux {machine.kernel}", f"{oldest} or newer lets clients choose a worker")


def compiled(config: Config, machine: Machine) -> Iterator[Finding]:
    """Plain Python is a few times slower."""
    advice = "install skywalker where there is a C compiler, and without SKYWALKER_PURE=1: it is a few times slower"
    yield weighed("frames", build.COMPILED, build.described(), advice)


def msgpack(config: Config, machine: Machine) -> Iterator[Finding]:
    """msgpack has a slow form in Python."""
    from msgpack import Packer

    is_fast = not Packer.__module__.endswith("fallback")
    found = f"its {'extension' if is_fast else 'slow form in Python'} is used"
    yield weighed("msgpack", is_fast, found, "install a wheel of msgpack, and without MSGPACK_PUREPYTHON")


def admin(config: Config, machine: Machine) -> Iterator[Finding]:
    """The admin server needs packages of its own."""
    if config.admin:
        missing = extras.missing(extras.ADMIN)
        found = f"lacks {', '.join(missing)}" if missing else "has all packages that it needs"
        yield weighed("admin server", not missing, found, f"{extras.command_for('admin')}, or run with --no-admin")
