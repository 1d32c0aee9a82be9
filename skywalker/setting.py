"""One setting of a node: what it is called in each place it may come from, what it may be, and how it is written."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from skywalker.errors import ConfigError
from skywalker.journal.settings import ROTATION, SAMPLE, rotation, sampling
from skywalker.limits import KIB, MAX_FRAME, MIB
from skywalker.members import MAX_NAME, MAX_TOKENS
from skywalker.tls.words import MINIMUMS
from skywalker.units import duration, size

Value = str | int | float  # a bool is an int

MAX_PORT: Final = 65_535

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""The variable by which systemd says where the files are that LoadCredential= and others name."""

LOG_LEVELS: Final = ("info", "warning", "error")
"""What a line of the log may be, the least first."""

LOG_FORMATS: Final = ("logfmt", "json")
"""How it may be written."""

_DAY_S: Final = 86_400
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "port": (0, MAX_PORT),
    "pubsub_port": (0, MAX_PORT),
    "workers": (0, 1024),
    "backlog": (1, 65_535),
    "drain_timeout_s": (0, _DAY_S),
    "watchdog_s": (0.1, _DAY_S),
    "admin_port": (0, MAX_PORT),
    "tokens": (1, MAX_TOKENS),
    "health_port": (0, MAX_PORT),
    "max_rate": (0, 2**40),
    "max_plain_reply": (64, MAX_FRAME),
    "max_links": (0, 2**40),
    "max_moves": (0, 2**40),
}
_ANY_DURATION: Final = (0.001, _DAY_S)
_ANY_NUMBER: Final = (1, 2**40)
_NEVER_EMPTY: Final = frozenset(("bind", "service", "consul_url"))
_LONGEST: Final[Mapping[str, int]] = {"name": MAX_NAME}
_FORMS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "journal_sample": (SAMPLE, sampling),
    "journal_rotate": (ROTATION, rotation),
    "log_level": ("info, warning or error", LOG_LEVELS.index),
    "log_format": ("logfmt or json", LOG_FORMATS.index),
    "tls_minimum": ("1.3 or 1.2", MINIMUMS.index),
}
"""What a text may be, and what raises ValueError if it is not."""
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WHOLE: Final = re.compile(r"-?\d{1,15}", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and what it is called in each place it may come from."""

    table: str
    key: str
    default: Value
    help: str
    secret: bool = False

    def of(self, config: object) -> Value:
        """Return its value in a Config."""
        value: Value = getattr(getattr(config, self.table) if self.table else config, self.key)
        return value

    @property
    def path(self) -> str:
        """Its name in the TOML file, with the table: `limits.max_calls`."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def stem(self) -> str:
        """The key without the unit of seconds, since a flag or a variable may spell its own: `drain_timeout`."""
        return self.key.removesuffix("_s")

    @property
    def flag(self) -> str:
        """Its flag: `--drain-timeout`; `--no-admin` for a switch that is on by default; a secret has none."""
        if self.secret:
            return ""
        no = "no-" if self.default is True else ""
        return f"--{no}{self.stem.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """Its environment variable: `SKYWALKER_DRAIN_TIMEOUT`."""
        return f"SKYWALKER_{self.stem.upper()}"

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off, so that its flag takes no value."""
        return isinstance(self.default, bool)

    @property
    def metavar(self) -> str:
        """What kind of value a flag takes, in one word."""
        if isinstance(self.default, str):
            return "TEXT"
        return "TIME" if self._is_duration else "SIZE" if self._is_size else "N"

    @property
    def allowed(self) -> str:
        """What its value may be, to end the sentence "this is not ..."."""
        if self.is_switch:
            return "true or false"
        if isinstance(self.default, str):
            if self.key in _FORMS:
                return _FORMS[self.key][0]
            longest = f" of at most {_LONGEST[self.key]} characters" if self.key in _LONGEST else ""
            return f"one line of text{longest}" + (" that is not empty" if self.key in _NEVER_EMPTY else "")
        least, most = self._range
        kind = "a number of seconds" if self._is_duration else "a whole number"
        written = ", also written as 500ms, 5s or 2m" if self._is_duration else ""
        written = ", also written as 64KiB or 1MiB" if self._is_size else written
        return f"{kind} from {least:.15g} to {most:.15g}{written}"

    def shown(self, value: Value) -> str:
        """Return `value` the short way that parse() reads back: `1MiB`, `10s`."""
        if self.is_switch:
            return "true" if value else "false"
        if self._is_duration:
            return f"{float(value):.6f}".rstrip("0").rstrip(".") + "s"
        if self._is_size:
            for unit, suffix in ((1024 * MIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
                if value and int(value) % unit == 0:
                    return f"{int(value) // unit}{suffix}"
        return str(value)

    def flags(self, value: Value) -> list[str]:
        """Return the arguments of a command line that stand for `value`; none if it is a secret."""
        if self.secret:
            return []
        if self.is_switch:
            return [self.flag] if value is not self.default else []
        return [f"{self.flag}={self.shown(value)}"]

    def credential(self, environ: Mapping[str, str]) -> str | None:
        """Return a secret that systemd passes to this process, in a file of its path; None if it passes none.

        Raises ConfigError for one that cannot be read.
        """
        directory = environ.get(CREDENTIALS)
        if not self.secret or not directory:
            return None
        file = Path(directory, self.path)
        try:
            return file.read_text().removesuffix("\n")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigError(f"{file}: cannot be read: {reason}") from error

    def parse(self, text: str, where: str) -> Value:
        """Return the value that the text of a flag or variable stands for. Raises ConfigError naming `where`."""
        if self.is_switch:
            return self.accept(_TRUTHS.get(text.strip().lower(), text), where)
        bare_number = isinstance(self.default, int) and _WHOLE.fullmatch(text.strip())
        return self.accept(int(bare_number[0]) if bare_number else text, where)

    def accept(self, value: object, where: str) -> Value:
        """Return `value`, of a TOML file or a Python program, as the setting's type. Raises ConfigError."""
        given = value
        if isinstance(value, str) and (self._is_duration or self._is_size):
            try:
                value = duration(value) if self._is_duration else size(value)
            except ValueError:
                value = None
        if isinstance(self.default, str):
            if isinstance(value, str) and self._is_good(value):
                return value
        elif self.is_switch:
            if isinstance(value, bool):
                return value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            least, most = self._range
            # A NaN compares as neither.
            if least <= value <= most:
                if isinstance(self.default, float):
                    return float(value)
                if isinstance(value, int):
                    return value
        told = "the secret that was given" if self.secret else repr(given)
        raise ConfigError(f"{where}: {told} is not {self.allowed}")

    def _is_good(self, text: str) -> bool:
        if self.key in _FORMS:
            try:
                _FORMS[self.key][1](text)
            except ValueError:
                return False
        has_good_length = text.strip() or self.key not in _NEVER_EMPTY
        return bool(has_good_length) and len(text) <= _LONGEST.get(self.key, len(text)) and text.isprintable()

    @property
    def _is_duration(self) -> bool:
        return self.key.endswith("_s")

    @property
    def _is_size(self) -> bool:
        return self.key.endswith(("_bytes", "_buffer", "_keep"))

    @property
    def _range(self) -> tuple[float, float]:
        return _RANGES.get(self.key, _ANY_DURATION if self._is_duration else _ANY_NUMBER)
