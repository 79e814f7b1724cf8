"""Numbers in requests, and the exact sums of INCRBYFLOAT."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, InvalidOperation

from lsmkv.server.resp import CommandError

MIN_INT = -(2**63)
MAX_INT = 2**63 - 1
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_FLOAT = re.compile(
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|0x[0-9a-f]+)",
    re.IGNORECASE,
)
_EXACT = Context(prec=60)
_MAX_LONG_DOUBLE = Decimal("1.1897e4932")

NOT_AN_INTEGER = "ERR value is not an integer or out of range"
NOT_A_FLOAT = "ERR value is not a valid float"


def to_int(text: bytes, error: str = NOT_AN_INTEGER) -> int:
    """A 64-bit integer in its only decimal form; :class:`CommandError` for anything else."""
    if _INTEGER.fullmatch(text):
        value = int(text)
        if MIN_INT <= value <= MAX_INT:
            return value
    raise CommandError(error)


def to_float(text: bytes, error: str = NOT_A_FLOAT) -> float:
    """A double, infinities included; :class:`CommandError` for anything else, NaN too.

    >>> to_float(b"-1.5e3"), to_float(b"+inf")
    (-1500.0, inf)
    """
    if not _FLOAT.fullmatch(text):
        raise CommandError(error)
    if text.lstrip(b"+-")[:2].lower() == b"0x":
        try:
            return float(int(text, 16))
        except OverflowError:
            raise CommandError(error) from None
    value = float(text)
    if math.isinf(value) and b"inf" not in text.lower():
        raise CommandError(error)  # more than a double holds
    return value


def add_decimal(old: bytes, increment: bytes) -> bytes:
    """The sum in decimal, with at most 17 digits behind the point.

    Redis adds 80-bit floating point numbers; decimal sums are exact.

    >>> add_decimal(b"0.1", b"0.2"), add_decimal(b"5.0e3", b"-200")
    (b'0.3', b'4800')
    """
    total = _EXACT.add(_decimal(old), _decimal(increment))
    if abs(total) > _MAX_LONG_DOUBLE:
        raise CommandError("ERR increment would produce NaN or Infinity")
    text = f"{total:.17f}".rstrip("0").rstrip(".")
    return b"0" if text == "-0" else text.encode()


def _decimal(text: bytes) -> Decimal:
    try:
        value = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        raise CommandError(NOT_A_FLOAT) from None
    fits = value.is_finite() and value.copy_abs() <= _MAX_LONG_DOUBLE
    if not fits or b"_" in text or text != text.strip():
        raise CommandError(NOT_A_FLOAT)
    return value
