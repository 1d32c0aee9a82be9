"""What figures depend on: the machine, and how what runs on it was built, in a few words."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from skywalker import build


def described() -> str:
    """Return the processor, the number of cores and the kernel."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # no Linux: the architecture has to do
    release, _, _ = platform.release().partition("-")
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {release}"


def kind() -> str:
    """Return the same without a name."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def python() -> str:
    """Return which Python runs this."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def settings(runs: int, seconds: float) -> dict[str, str]:
    """Return what a table of medians over so many runs, of so many seconds each, says of its making."""
    return {
        "machine": described(),
        "python": python(),
        "build": build.described(),
        "method": f"medians of {runs} interleaved run{'s' if runs > 1 else ''} of {seconds:g} s",
    }
