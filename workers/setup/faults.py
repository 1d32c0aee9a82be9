"""What is wrong with a config file: all of it, each with its line.

Whoever reads settings stops at the first mistake. So what is to blame for that is taken out, and the rest read again.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from skywalker import config, toml_lines
from skywalker.config import SETTINGS, Config
from skywalker.errors import ConfigError
from workers.engine import credentials
from workers.setup import cluster, exposure, ports, privileges

MOST: Final = 100
"""Faults that are looked for."""

_AT: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

_QUOTED: Final = re.compile(r"'[^']*'|\S+:\w+")
"""What is no word of an error's own: a value, or how an address is written, host:port."""

_FILES: Final[tuple[toml_lines.Path, ...]] = (("tls_cert",), ("tls_key",), ("tls_ca",))
"""Keys of files that errors begin with, rather than with the key."""

_BY_PATH: Final = {each.path: each for each in SETTINGS}


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One mistake."""

    file: Path
    line: int | None  # None if it is of the file as a whole, or of what is not in it
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


def faults(file: Path) -> tuple[Config, list[Fault]]:
    """Return the settings of a file without its faults, and these, by their lines.

    Raises ConfigError for a file that cannot be read, or is no TOML.
    """
    content = ""
    try:
        content = config.text_of(file)
        document = config.document_of(content, file)
        places = toml_lines.lines(content)
    except ConfigError as error:
        raise ConfigError(str(Fault(file, _line_of(str(error), content), _bare(error, file)))) from error
    except RecursionError:
        raise config.too_deep(file) from None
    found: list[Fault] = []
    taken_out: list[toml_lines.Path] = []
    ways_are_counted = False
    while True:
        settings = None
        try:
            settings = config.of_document(document, file)
            # Nothing is taken out for there being too many, as each may be wrong besides.
            if not ways_are_counted and (text := cluster.too_many_ways(settings.cluster)):
                path = _blamed(text, document)
                found.append(Fault(file, places.get(path) if path else None, text))
            ways_are_counted = True
            _check(settings)
            break
        except ConfigError as error:
            text = _bare(error, file)
            path = _blamed(text, document)
            fault = Fault(file, places.get(path) if path else None, text)
            if path is None or len(found) >= MOST:
                found.append(fault)
                break
            # What is wrong together with what was taken out, or without it, may be right once that is.
            words = _spoken_of(text) if settings is not None else set()
            follows = any(out[: len(path)] == path or _word_for(out) in words for out in taken_out)
            if not follows:
                found.append(fault)
            assert path not in taken_out, "or this would go on for ever"
            taken_out.append(path)
            _take_out(document, path)
    return settings or Config(), sorted(found, key=lambda fault: fault.line or 0)


def _line_of(text: str, content: str) -> int | None:
    """Return the line that an error of tomllib tells; the last one if it tells the end; None if it tells none."""
    at = _AT.search(text)
    if at is None:
        return None
    return int(at[1]) if at[1] else content.rstrip().count("\n") + 1


def _check(settings: Config) -> None:
    """Raise ConfigError if settings that are right by themselves are wrong together."""
    ports.check(settings)
    if settings.user not in ("", privileges.ROOT):
        privileges.account(settings.user)
    exposure.check(settings)
    if settings.tls_cert:
        credentials.server(settings)
    cluster.check_settings(settings.cluster)
    settings.journal_settings  # noqa: B018  # it is made of several, and may be wrong


def _word_for(path: toml_lines.Path) -> str:
    return path[0] if path[0] == "access" else path[-1]


def _spoken_of(text: str) -> set[str]:
    """Return the words of an error, behind what it is about, as keys."""
    words = re.findall(r"[\w-]+", _QUOTED.sub("", text.partition(": ")[2]))
    return {word.lstrip("-").replace("-", "_") for word in words}


def _bare(error: ConfigError, file: Path) -> str:
    return str(error).removeprefix(f"{file}: ")


def _blamed(text: str, document: dict[str, Any]) -> toml_lines.Path | None:
    """Return the key in a document that an error is about; None if it says of none that there is."""
    there = dict(_leaves(document))
    if named := [path for path in there if text.startswith(_beginnings(path))]:
        return max(named, key=len)
    files = {path: value for path in _FILES if isinstance(value := there.get(path), str)}
    named = [path for path, value in files.items() if text.startswith((f"{value} ", f"{value}, "))]
    return max(named, key=lambda path: len(files[path]), default=None)


def _beginnings(path: toml_lines.Path) -> tuple[str, ...]:
    """Return how errors about a key begin."""
    table, key, dotted = ".".join(path[:-1]), path[-1], ".".join(path)
    found = [f"{dotted}: ", f"{dotted} is not ", f"unknown key {dotted!r}"]
    if table:
        found += [f"{table}: {key}: ", f"{table}: unknown key {key!r}", f"{table}: {key!r} is not a name"]
    if (setting := _BY_PATH.get(dotted)) is not None:
        found += [f"{setting.key}: ", f"{setting.flag}: ", f"{setting.flag} and "] if setting.flag else []
    return tuple(found)


def _leaves(document: dict[str, Any], table: toml_lines.Path = ()) -> Iterator[tuple[toml_lines.Path, Any]]:
    """Yield all keys, those of tables too."""
    for key, value in document.items():
        yield (*table, key), value
        if isinstance(value, dict):
            yield from _leaves(value, (*table, key))


def _take_out(document: dict[str, Any], path: toml_lines.Path) -> None:
    for key in path[:-1]:
        document = document[key]
    del document[path[-1]]
