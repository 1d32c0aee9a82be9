"""Where in a TOML file each key stands, which tomllib does not tell.

A statement of TOML ends with a line. So as many lines as make a document by themselves are one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST_LINES: Final = 1000
"""Lines of one statement. What follows a longer one is not told."""

Path = tuple[str, ...]


def lines(text: str) -> dict[Path, int]:
    """Return by key, its tables before it, the line where it is first set. The text must be a document of TOML."""
    found: dict[Path, int] = {}
    table: Path = ()
    for number, statement in _statements(text):
        document = tomllib.loads(statement)
        is_header = statement.lstrip().startswith("[")
        for path in _paths(document, () if is_header else table):
            found.setdefault(path, number)
        if is_header:
            table = _innermost(document)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement, comment or empty line, and the number of its first line."""
    begun: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        begun.append(line)
        statement = "\n".join(begun)
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            if len(begun) == MOST_LINES:
                return
            continue
        yield number - len(begun) + 1, statement
        begun = []


def _paths(document: Mapping[str, Any], table: Path) -> Iterator[Path]:
    for key, value in document.items():
        path = (*table, key)
        yield path
        inner = value[-1] if isinstance(value, list) and value else value
        if isinstance(inner, dict):
            yield from _paths(inner, path)


def _innermost(document: Mapping[str, Any]) -> Path:
    return max(_paths(document, ()), key=len)
