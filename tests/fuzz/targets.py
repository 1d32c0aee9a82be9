"""The targets by name, and the inputs that each begins with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent

Check = Callable[[bytes], object]
"""Returns what came of an input, the same compiled and plain. Raises what shows that the invariant does not hold."""

NAMES: Final = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))

LONGEST: Final = 8192
"""Bytes of an input: every limit that a target may reach is below, or lowered for it."""


def check_of(name: str) -> Check:
    """Return what checks one input of a target."""
    check: Check = importlib.import_module(f"tests.fuzz.fuzz_{name}").check_input
    return check


def seeds_of(name: str) -> Path:
    """Return the directory of what a target begins with."""
    return HERE / "seeds" / name


def inputs_in(directory: Path) -> list[bytes]:
    """Return the inputs in a directory, in the order of their names; none if there is no such directory."""
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    return [path.read_bytes() for path in files if path.is_file()]
