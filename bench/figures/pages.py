"""Tables in pages that people write: what stands between two marks is replaced, the rest stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.errors import BenchError


def split(file: Path, name: str) -> tuple[str, str]:
    """Return what stands before and after the place of `name` in a page; a page that is not there yet has nothing else.

    Raises BenchError for a page without the marks, or that cannot be read.
    """
    begin, end = _marks(name)
    try:
        page = file.read_text() if file.exists() else ""
    except OSError as error:
        raise BenchError(f"cannot read {file}: {error.strerror}") from error
    if not page:
        return "", "\n"
    before, began, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (began and ended):
        raise BenchError(f"{file} has no place for the table; put these marks where it belongs: {begin} {end}")
    return before, after


def has(file: Path, name: str) -> bool:
    """Return whether a page has a place for `name`."""
    return _marks(name)[0] in file.read_text()


def put(file: Path, name: str, lines: Iterable[str]) -> None:
    """Write `lines` between the marks of `name` in a page. Raises BenchError as split(), or if it cannot be written."""
    before, after = split(file, name)
    begin, end = _marks(name)
    text = "\n".join(lines)
    try:
        file.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    except OSError as error:
        raise BenchError(f"cannot write {file}: {error.strerror}") from error


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- begin {name} -->", f"<!-- end {name} -->"
