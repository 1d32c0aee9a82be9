"""Standard output and standard error, as a command sees them.

Values go out by write(), at once and unbuffered, so that the next program in a pipe has them.
Colour is for terminals, and NO_COLOR turns it off there too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from skywalker.errors import SkywalkerError

STDOUT: Final = 1
STDERR: Final = 2

_UNPRINTABLE: Final = re.compile(r"[^\n -~]")
"""Characters of JSON that may be unprintable; a line break is between values."""


class OutputClosed(Exception):
    """Whoever read standard output has gone, as `head` does when it has enough."""


class OutputError(SkywalkerError):
    """Standard output cannot be written."""


def reserve_standard_descriptors() -> None:
    """Fill the numbers of closed standard streams, or the next socket would get one of them, and our output.

    They are opened the wrong way around, so that using them still fails.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if fd == 0 else os.O_RDONLY)


def write(data: bytes) -> None:
    """Write all of `data` to standard output. Raises OutputClosed or OutputError."""
    while data:
        try:
            data = data[os.write(STDOUT, data) :]
        except BlockingIOError:
            # Somebody who shares our standard output has made it non-blocking.
            select.select([], [STDOUT], [])
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise OutputError(f"cannot write to standard output: {error.strerror}") from error


def say(text: str) -> None:
    """Write text to standard output, names of files as they are. Raises as write() does."""
    write(text.encode(errors="surrogateescape"))


def end_by_sigpipe() -> None:
    """Die as other tools do when nobody reads what they write."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def complain(text: str) -> None:
    """Write one message to standard error, after the program's name."""
    message = f"{painted('skywalker:', '31', STDERR)} {shown(text)}\n"
    with contextlib.suppress(OSError):  # there is nowhere left to say it
        os.write(STDERR, message.encode())


def shown(text: str, longest: int | None = None) -> str:
    """Return what others say as a terminal may have it: in one line, with no escapes, and not endless."""
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return clean if longest is None or len(clean) <= longest else f"{clean[: longest - 1]}~"


def json_line(data: Any, *, indent: int | None = None) -> bytes:
    """Return data as JSON, in which whatever a terminal could take for more than text is escaped.

    JSON by itself leaves in place what erases a line (U+009B), turns it around (U+202E), or is not seen at all.
    Raises what json.dumps() does.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    if not text.isprintable():
        text = _UNPRINTABLE.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)
    return text.encode() + b"\n"


def colourful(fd: int) -> bool:
    """Whether colour is welcome on a stream."""
    return os.isatty(fd) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, code: str, fd: int = STDOUT) -> str:
    """Return `text` in the colour of an SGR code, or as it is where that is not welcome."""
    return f"\x1b[{code}m{text}\x1b[0m" if colourful(fd) else text


def width() -> int:
    """Return the columns of the terminal."""
    return shutil.get_terminal_size().columns


def speaks(text: str) -> bool:
    """Whether standard output can show these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


class Status:
    """The line; nothing is drawn where it is not `live`."""

    def __init__(self) -> None:
        self.live = os.isatty(STDERR) and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def draw(self, text: str) -> None:
        """Show `text`, as far as the terminal is wide, in place of what was there."""
        if self.live:
            self._drawn = True
            _write(f"\r{text[: width() - 1]}\x1b[K")

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._drawn = False
            _write("\r\x1b[K")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal is gone, the work is not
        os.write(STDERR, text.encode())


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    """Yield a line for each row, at least one; columns for which `right` is true are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(cells).rstrip()
