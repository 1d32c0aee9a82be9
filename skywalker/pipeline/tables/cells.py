"""What a value that came in MessagePack is worth in a column of a given type.

A value either fits, perhaps in another form, or is a misfit. It is never bent until it fits: 1.5
is no BIGINT, and "1" is none either.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from typing import Any, Final

import msgpack
from pyspark.sql import types

from skywalker.errors import ConfigError

Convert = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)  # Python's Decimal takes more
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)  # and its date takes weeks

_INTEGERS: Final[dict[type[types.DataType], int]] = {
    types.ByteType: 8,
    types.ShortType: 16,
    types.IntegerType: 32,
    types.LongType: 64,
}


class MisfitError(ValueError):
    """A value is not of the type of its column."""


def exact_types(of: types.DataType) -> frozenset[type] | None:
    """Return the Python types of which Arrow itself makes a column as converter() would; None if there are none.

    Arrow may refuse such a value nevertheless, a number that is too large for one.
    """
    if isinstance(of, tuple(_INTEGERS)):
        return frozenset((int, type(None)))
    if isinstance(of, types.DoubleType):
        return frozenset((float, int, type(None)))
    if isinstance(of, types.BooleanType):
        return frozenset((bool, type(None)))
    if isinstance(of, types.StringType):
        return frozenset((str, type(None)))
    if isinstance(of, types.BinaryType):
        return frozenset((bytes, type(None)))
    return None


def converter(of: types.DataType, where: str, *, nullable: bool = True) -> Convert:
    """Return what turns a value into one that Arrow takes for a column of a type, and raises MisfitError if it can't.

    Raises ConfigError, naming the column `where` it is, for a type that no message has a form for.
    """
    inner = _scalar(of) or _container(of, where)
    if inner is None:
        raise ConfigError(f"column {where}: messages hold nothing of type {of.simpleString()}; read it as STRING")
    return (lambda value: None if value is None else inner(value)) if nullable else lambda value: inner(_present(value))


def _scalar(of: types.DataType) -> Convert | None:
    if isinstance(of, tuple(_INTEGERS)):
        limit = 1 << _INTEGERS[type(of)] - 1
        return lambda value: _integer(value, limit)
    if isinstance(of, types.DecimalType):
        return lambda value: _decimal(value, of.precision, of.scale)
    found: dict[type[types.DataType], Convert] = {
        types.BooleanType: _boolean,
        types.FloatType: _float32,
        types.DoubleType: _float64,
        types.StringType: _string,
        types.BinaryType: _binary,
        types.DateType: _date,
        types.TimestampType: _timestamp,
        types.TimestampNTZType: lambda value: _timestamp(value).replace(tzinfo=None),
    }
    return found.get(type(of))


def _container(of: types.DataType, where: str) -> Convert | None:
    if isinstance(of, types.ArrayType):
        element = converter(of.elementType, f"{where}.element", nullable=of.containsNull)
        return lambda value: [element(each) for each in _of(value, list)]
    if isinstance(of, types.MapType):
        key = converter(of.keyType, f"{where}.key", nullable=False)
        item = converter(of.valueType, f"{where}.value", nullable=of.valueContainsNull)
        return lambda value: [(key(name), item(each)) for name, each in _of(value, dict).items()]
    if isinstance(of, types.StructType):
        if len({*of.names}) < len(of.names):
            raise ConfigError(f"column {where} has two fields of one name, of {', '.join(of.names)}; rename one")
        fields = [
            (field.name, converter(field.dataType, f"{where}.{field.name}", nullable=field.nullable))
            for field in of.fields
        ]
        return lambda value: {name: convert(_of(value, dict).get(name)) for name, convert in fields}
    return None


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise MisfitError
    return value


def _present(value: Any) -> Any:
    if value is None:
        raise MisfitError
    return value


def _integer(value: Any, limit: int) -> int:
    if type(value) is not int or not -limit <= value < limit:
        raise MisfitError
    return value


def _boolean(value: Any) -> bool:
    return bool(_of(value, bool))


def _float64(value: Any) -> float:
    if type(value) not in (int, float):
        raise MisfitError
    return float(value)


def _float32(value: Any) -> float:
    number = _float64(value)
    if math.isfinite(number) and abs(number) >= 2.0**128:
        raise MisfitError
    return number


def _string(value: Any) -> str:
    try:
        if type(value) is bytes:
            return value.decode()
        str(_of(value, str)).encode()  # bytes that are no UTF-8 have come as halves of surrogates
    except UnicodeError as error:
        raise MisfitError from error
    return str(value)


def _binary(value: Any) -> bytes:
    if type(value) is str:
        return value.encode(errors="surrogateescape")
    return bytes(_of(value, bytes))


def _decimal(value: Any, precision: int, scale: int) -> decimal.Decimal:
    if type(value) not in (int, float, str) or not _NUMBER.fullmatch(str(value)):
        raise MisfitError
    try:
        number = decimal.Decimal(str(value))
        exact = number.quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=precision))
    except decimal.InvalidOperation as error:  # too many digits
        raise MisfitError from error
    if exact != number:
        raise MisfitError
    return exact


def _timestamp(value: Any) -> datetime.datetime:
    """Read a MessagePack timestamp, ISO 8601 or seconds since 1970, whole or not."""
    try:
        if type(value) is str:
            moment = datetime.datetime.fromisoformat(value)
            return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        if isinstance(value, msgpack.Timestamp):
            return _EPOCH + datetime.timedelta(microseconds=value.to_unix_nano() // 1000)
        return _EPOCH + datetime.timedelta(seconds=_float64(value) if type(value) is float else _of(value, int))
    except (ValueError, OverflowError) as error:
        raise MisfitError from error


def _date(value: Any) -> datetime.date:
    if isinstance(value, msgpack.Timestamp):
        return _timestamp(value).date()
    if not _DAY.fullmatch(_of(value, str)):  # a number may be of days or of seconds
        raise MisfitError
    try:
        return datetime.date.fromisoformat(value)
    except ValueError as error:
        raise MisfitError from error
