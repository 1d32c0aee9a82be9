"""How data is written on a command line and printed: it is JSON, and a bare word is a string."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.errors import HandlerFailed, NobodyHandles, NoSuchNode, SkywalkerError
from skywalker.json_form import FormError, Unprintable
from skywalker.wire.silk import FAILED, UNKNOWN_TYPE

_CODES: Final = {NobodyHandles: UNKNOWN_TYPE, HandlerFailed: FAILED, NoSuchNode: "no-such-node"}
"""What scripts can tell refusals by."""


def read(data: bytes) -> Any:
    """Return what some text stands for. Raises FormError."""
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise FormError("it is not UTF-8, as JSON is") from None
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise FormError("it is nested too deeply") from None
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise FormError(f"it looks like JSON but is none ({error})") from None
        return text


def argument(name: str, text: str) -> Any:
    """Return what an argument of the command line stands for. Raises UsageError."""
    try:
        return read(os.fsencode(text))
    except FormError as error:
        raise click.UsageError(f"{name} {text!r}: {error}") from error


def printed(data: Any) -> bytes:
    """Return data as a line. Raises Unprintable."""
    try:
        return terminal.json_line(data)
    except RecursionError:
        raise Unprintable("the data is nested too deeply to be printed") from None


def result(status: str, started: float, **fields: Any) -> bytes:
    """Return the line for scripts; `started` is when it began, on the monotonic clock."""
    return printed({"status": status, **fields, "ms": round((time.monotonic() - started) * 1000, 3)})


def failed(error: SkywalkerError, started: float, **fields: Any) -> bytes:
    """Return the line for scripts about something that failed."""
    code = next((code for cls, code in _CODES.items() if isinstance(error, cls)), None)
    return result(exits.word(error), started, **fields, **({"code": code} if code else {}), message=str(error))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
