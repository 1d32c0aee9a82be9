"""The options of a read or a write as Spark hands them over: text by name, whatever case the name is in.

A reader or a writer says once which names it knows; after that each option is read as the type
it has. Whatever is wrong is a ConfigError that names the option, what it was given and what is
allowed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from skywalker.errors import ConfigError

SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""What Spark adds to a stream's options for itself, in lower case."""

_WHOLE: Final = re.compile(r"-?\d{1,15}", re.ASCII)
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class Options:
    """The options of one read or write. Made by parse()."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts  # by name in lower case

    @classmethod
    def parse(cls, given: Mapping[str, str], known: Iterable[str]) -> Options:
        """Take the options that Spark hands over. Raises ConfigError for a name that is not among `known`."""
        names = {name.lower(): name for name in known}
        texts = {name.lower(): text for name, text in given.items()}
        for name in given:
            if name.lower() not in names.keys() | SPARKS_OWN:
                raise ConfigError(f"unknown option {name!r}{_instead(name, names)}")
        return cls(texts)

    def has(self, name: str) -> bool:
        """Whether the option was given, and is not empty."""
        return bool(self._texts.get(name.lower(), "").strip())

    def is_blank(self, name: str) -> bool:
        """Whether the option was given, and is empty."""
        return name.lower() in self._texts and not self.has(name)

    def text(self, name: str, default: str = "") -> str:
        """Return the option as it was given, without the blanks around it; `default` if it is empty."""
        return self._texts.get(name.lower(), "").strip() or default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the parts of a comma list. Raises ConfigError if one is empty or there twice."""
        if not self.has(name):
            return ()
        parts = tuple(part.strip() for part in self.text(name).split(","))
        if "" in parts or len({*parts}) < len(parts):
            raise self.wrong(name, "a comma list of names that are not empty, each once")
        return parts

    def one_of(self, name: str, allowed: tuple[str, ...], default: str = "") -> str:
        """Return the option in the spelling of `allowed`. Raises ConfigError if it is not there."""
        text = self.text(name, default)
        for word in allowed:
            if word.lower() == text.lower():
                return word
        raise self.wrong(name, f"one of {', '.join(allowed)}")

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number. Raises ConfigError unless it is from `least` to `most`."""
        text = self.text(name, str(default))
        if _WHOLE.fullmatch(text) and least <= int(text) <= most:
            return int(text)
        raise self.wrong(name, f"a whole number from {least} to {most}")

    def truth(self, name: str, default: bool) -> bool:
        """Return whether the option is "true". Raises ConfigError if it is not "false" either."""
        text = self.text(name, str(default)).lower()
        if text in _TRUTHS:
            return _TRUTHS[text]
        raise self.wrong(name, "true or false")

    def wrong(self, name: str, allowed: str) -> ConfigError:
        """Return the error that says that an option is not what is allowed."""
        return ConfigError(f"option {name!r} is {self._texts.get(name.lower(), '')!r}; it must be {allowed}")


def _instead(unknown: str, names: Mapping[str, str]) -> str:
    """Return the hint that ends an error about an unknown option: the nearest name, else all."""
    near = difflib.get_close_matches(unknown.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean {names[near[0]]!r}?" if near else f"; known are {', '.join(names.values())}"
