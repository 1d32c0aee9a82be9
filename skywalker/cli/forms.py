"""How topics and values are written on a command line and in pipes: as JSON, raw, or as MessagePack.

JSON is the default, and a bare word is a string. What `recv` prints in a form, `send` takes in the same.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgpack

from skywalker.cli import terminal
from skywalker.json_form import FormError, NoJson, Unprintable, from_text, to_json
from skywalker.limits import MIB
from skywalker.wire import values

LONGEST_LINE: Final = MIB
"""Bytes: more than any value that fits in a frame, however it is escaped."""


class Form(abc.ABC):
    """One way to write values down."""

    @abc.abstractmethod
    def argument(self, data: bytes) -> Any:
        """Return the value of an argument of the command line. Raises FormError."""

    @abc.abstractmethod
    def document(self, data: bytes) -> Any:
        """Return the value that all of standard input is. Raises FormError."""

    def stream(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """Yield the values of a stream, each once it is complete. Raises FormError."""
        return map(self.document, lines(chunks))

    @abc.abstractmethod
    def text(self, value: Any) -> bytes:
        """Return what is printed for one value. Raises Unprintable."""

    @abc.abstractmethod
    def line(self, value: Any) -> bytes:
        """Return what is printed for one of many values. Raises Unprintable."""


class Json(Form):
    """JSON. Text that is none is a string, unless it begins as an object, an array or a string would."""

    def argument(self, data: bytes) -> Any:
        try:
            return from_text(data)
        except NoJson as error:
            raise FormError(f"{error}; --raw sends it as it is") from None

    def document(self, data: bytes) -> Any:
        return self.argument(data.removesuffix(b"\n").removesuffix(b"\r"))

    def text(self, value: Any) -> bytes:
        return self.line(value)

    def line(self, value: Any) -> bytes:
        try:
            return terminal.json_line(to_json(value))
        except RecursionError:
            raise Unprintable("the value is nested too deeply to be printed as JSON; --msgpack can") from None


class Raw(Form):
    """The bytes themselves: a string if they are UTF-8, bytes if not."""

    def argument(self, data: bytes) -> Any:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def document(self, data: bytes) -> Any:
        return self.argument(data)

    def text(self, value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode(errors="surrogateescape")
        return value if isinstance(value, bytes) else Json().line(value)

    def line(self, value: Any) -> bytes:
        return self.text(value).removesuffix(b"\n") + b"\n"


class MessagePack(Form):
    """MessagePack: in arguments as hexadecimal digits, in streams one value after the other."""

    def argument(self, data: bytes) -> Any:
        try:
            return self.document(bytes.fromhex(data.decode("ascii")))
        except FormError:
            raise
        except ValueError:
            raise FormError("with --msgpack an argument is hexadecimal digits, such as a3666f6f") from None

    def document(self, data: bytes) -> Any:
        try:
            return values.unpack(data)
        except ValueError as error:
            raise FormError(f"it is not one MessagePack value: {error or type(error).__name__}") from None

    def stream(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        unpacker = msgpack.Unpacker(
            strict_map_key=False, unicode_errors="surrogateescape", max_buffer_size=LONGEST_LINE
        )
        consumed = fed = 0
        try:
            for chunk in chunks:
                fed += len(chunk)
                unpacker.feed(chunk)
                for value in unpacker:
                    consumed = unpacker.tell()
                    yield value
        except (ValueError, TypeError, msgpack.BufferFull) as error:
            raise FormError(f"it is no MessagePack: {error or type(error).__name__}") from None
        if consumed != fed:
            raise FormError("it ends within a MessagePack value")

    def text(self, value: Any) -> bytes:
        return values.pack(value)

    def line(self, value: Any) -> bytes:
        return values.pack(value)


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream without their ends, each once it is complete. Raises FormError if one is huge."""
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete
        if len(rest) > LONGEST_LINE:
            raise FormError(f"a line is longer than {LONGEST_LINE} bytes")
    if rest:
        yield rest
