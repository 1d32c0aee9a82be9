"""A module that is compiled where that was possible, together with its other form: both come from one file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any


@cache
def twins(name: str) -> tuple[ModuleType, ...]:
    """Return the module as everybody imports it, and, where it is compiled, its plain form beside it."""
    ours = importlib.import_module(name)
    stem = Path(__file__).parents[2].joinpath(*name.split("."))
    names = [stem.with_name(stem.name + suffix) for suffix in EXTENSION_SUFFIXES]
    compiled = [str(name) for name in names if name.is_file()]
    if not compiled:
        return (ours,)
    source = str(stem.with_suffix(".py"))
    is_plain = ours.__file__ == source
    path = compiled[0] if is_plain else source
    loader = ExtensionFileLoader(name, path) if is_plain else SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    other = importlib.util.module_from_spec(spec)
    loader.exec_module(other)
    assert sys.modules[name] is ours, "nobody else meets the other form"
    return ours, other


def outcome(call: Callable[[], Any], *expected: type[Exception]) -> Any:
    """Return what a call returns, or of one of the expected errors its class's name and its text."""
    try:
        return call()
    except expected as error:
        return type(error).__name__, str(error)


def agreed(results: Iterable[Any]) -> Any:
    """Return what all forms say. Raises AssertionError if they do not say the same."""
    first, *others = results
    for other in others:
        assert other == first, f"{first!r:.500}\nbut its twin says\n{other!r:.500}"
    return first
